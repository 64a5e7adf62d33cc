"""Layers with unusual parameters, through every task that takes a step of them."""

import pytest
import torch

from highway_bench.cell import PHASES
from highway_bench.families import make_family
from highway_bench.tasks._step import StackStep
from tests import unusual_layers
from tests.cells import cell, run, scalars

LAYERS = [f"{unusual_layers.__name__}:{name}" for name in unusual_layers.NAMES]


def all_tensors(work):
    named = (*work.network.named_parameters(), *work.network.named_buffers())
    return {name: value.detach().clone() for name, value in named}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_step_restores_what_it_changed(layer, phase):
    work = StackStep(cell("throughput", "pre-norm", layer, phase=phase))
    start = all_tensors(work)
    for _ in range(2):
        work.step()
        if phase == "train-step":
            assert any(not torch.equal(value, start[name]) for name, value in all_tensors(work).items())
        work.restore()
        assert all(torch.equal(value, start[name]) for name, value in all_tensors(work).items())
    assert work.flops_per_item > 0
    assert work.least_bytes() > 0


def test_a_buffer_that_a_step_exchanges_is_put_back():
    work = StackStep(cell("throughput", "plain", f"{unusual_layers.__name__}:spectral"))
    (norm,) = [part for part in work.network.modules() if hasattr(part, "_u")][:1]
    u, value = norm._u, norm._u.clone()
    norm._u = torch.zeros_like(u)
    work.restore()
    assert norm._u is u
    assert torch.equal(u, value)


@pytest.mark.parametrize("layer", LAYERS)
def test_bytes_are_counted(layer):
    bytes_of = scalars(run(cell("memory", "pre-norm", layer, phase="train-step")))
    assert bytes_of["peak"] > bytes_of["parameter_bytes"] >= bytes_of["gradients"] > 0
    without = layer.rpartition(":")[2] in ("experts", "low_rank")
    assert (bytes_of["gradients"] < bytes_of["parameter_bytes"]) == without


@pytest.mark.parametrize(
    ("layer", "parameters"),
    [
        ("low_rank", 2 * 8),  # neither the frozen map nor the integers
        ("complex_filter", 2 * 5 + 8 * 8 + 8),  # a complex number is two
        ("normed", 8 * 8 + 8 + 8),
    ],
)
def test_what_trains_is_matched(layer, parameters):
    reference = f"{unusual_layers.__name__}:{layer}"
    assert make_family(reference).sublayers[0].transform_parameters(8) == parameters
    assert StackStep(cell("throughput", "plain", reference, depth=3)).params == 3 * parameters

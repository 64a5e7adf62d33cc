"""One step of a bare stack: its phases, what it leaves behind, what it costs, and what it refuses."""

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.cell import PHASES
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.tasks import Skip, from_cell, tasks
from highway_bench.tasks._step import StackStep, check_recurrent
from tests.cells import cell, on_digits
from tests.combinations import combinations


def step(block="highway", family="dense", **changes):
    return StackStep(cell("throughput", block, family, **changes))


def weights(work):
    return [parameter.detach().clone() for parameter in work.network.parameters()]


@pytest.mark.parametrize("phase", PHASES)
def test_what_a_phase_does(phase):
    """Weights and momenta are put back: each sample is of the same update."""
    work = step(phase=phase)
    before, moved = weights(work), []
    for _ in range(3):
        work.step()
        moved.append(weights(work))
        work.restore()
        assert all(map(torch.equal, before, weights(work)))
    assert all(map(torch.equal, moved[0], moved[2]))
    changes = [not torch.equal(old, new) for old, new in zip(before, moved[0], strict=True)]
    assert all(changes) if phase == "train-step" else not any(changes)
    assert work.network.training == (phase != "forward")
    work.close()


def test_the_optimiser_is_the_one_of_trainability():
    """Of its class, with its options: fused, and no decay of biases."""
    bare = step(phase="train-step").optimiser
    training = tasks.get("trainability").prepare(on_digits(rate=1e-3)).training.optimiser
    assert type(bare) is type(training)
    own, other = (
        [{name: value for name, value in group.items() if name != "params"} for group in optimiser.param_groups]
        for optimiser in (bare, training)
    )
    assert own == other
    assert all(group["fused"] and group["momentum"] == 0.9 for group in own)


def test_recurrent_layers_in_bfloat16_are_skipped_on_a_gpu():
    lstm, linear = nn.Sequential(nn.LSTM(2, 2)), nn.Linear(2, 2)
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    for network, device, dtype in ((linear, gpu, torch.bfloat16), (lstm, cpu, torch.bfloat16), (lstm, gpu, torch.half)):
        check_recurrent(network, device, dtype)
    with pytest.raises(Skip, match="bfloat16"):
        check_recurrent(lstm, gpu, torch.bfloat16)


@pytest.mark.parametrize("one", [cell("throughput", dtype="tf32"), on_digits(dtype="tf32")], ids=lambda one: one.task)
def test_tf32_is_refused_on_a_cpu(one):
    with pytest.raises(BadInput, match="tf32"):
        tasks.get(one.task).prepare(one)


def test_every_network_sets_the_precision_of_its_cell(monkeypatch):
    used = []
    monkeypatch.setattr(from_cell, "use_precision", used.append)
    monkeypatch.setattr(from_cell, "check_dtype", lambda *_: None)
    assert step(dtype="tf32").x.dtype == torch.float32
    tasks.get("trainability").prepare(on_digits(dtype="float64"))
    assert used == ["tf32", "float64"]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_backward_is_twice_forward_less_the_first_layers_input(depth):
    """A product forward, two backward; but nothing needs the input's gradient, so the first layer has one."""
    counts = {phase: step("plain", depth=depth, phase=phase).flops_per_item for phase in PHASES}
    layer = 2 * 8 * 8
    assert counts["forward"] == depth * layer
    assert counts["forward-backward"] == (3 * depth - 1) * layer
    assert counts["train-step"] == counts["forward-backward"]


@pytest.mark.parametrize(("block", "family"), combinations())
def test_every_combination_steps_in_every_phase(block, family):
    built, spec = make_family(family), blocks.get(block)
    forward, joins = 2 * spec.layer_flops(built, 8, built.positions(5)), len(built.sublayers)
    if spec.extra_flops is not None:  # what the network's end adds
        end = 2 * spec.extra_flops(built, 8, joins) - spec.extra_flops(built, 8, 2 * joins)
        forward += end * built.positions(5)
    for phase in PHASES:
        work = step(block, family, phase=phase, seq_len=5)
        work.step()
        assert work.items == 4
        assert work.params == sum(p.numel() for p in work.network.parameters())
        if phase == "forward":
            assert work.flops_per_item == forward
        else:
            assert 2 * forward <= work.flops_per_item <= 3.5 * forward


def test_every_block_meets_the_same_input():
    first, second = (step(block) for block in ("plain", "highway-free"))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.cotangent, second.cotangent)
    assert first.x.shape == (4, 8)


def test_one_seed_is_one_network():
    same, again, other = (weights(step(seed=seed)) for seed in (3, 3, 4))
    assert all(map(torch.equal, same, again))
    assert not all(map(torch.equal, same, other))


def test_the_least_bytes_by_hand():
    """8 wide, 2 layers, 4 items, float32: the weights, and each layer's input and output, once."""
    least = (2 * 72 + 2 * 2 * 32) * 4
    assert step("plain", phase="forward").least_bytes() == least
    assert step("plain", phase="forward-backward").least_bytes() == 3 * least
    optimiser = 5 * 2 * 72 * 4  # SGD with momentum reads three numbers a weight and writes two
    assert step("plain", phase="train-step").least_bytes() == 3 * least + optimiser


def test_graphs_are_recorded_on_cuda_only():
    with pytest.raises(Skip, match="CUDA"):
        step(mode="cudagraph")


def test_a_block_that_does_not_compile_says_so(monkeypatch):
    spec = blocks.get("highway")
    monkeypatch.setitem(spec.__dict__, "compile", False)
    with pytest.raises(Skip, match="highway"):
        step(mode="compile")

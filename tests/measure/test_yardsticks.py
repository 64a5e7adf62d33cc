"""The yard-sticks: frozen, of torch's own layers, one for each family."""

import hashlib
from pathlib import Path

import pytest
import torch

from highway_bench.families import families, make_family
from highway_bench.measure import yardsticks
from highway_bench.measure.yardsticks import KINDS, YardstickStep

FROZEN = "44a68a346aaa1c6439155304692e0fefd6ec89ed6091c38892901caaa6b52cec"


def test_the_file_is_frozen():
    """A change breaks every series of the history, and makes new ratios incomparable with stored ones.

    Where it must change, add a new kind and keep these as they are.
    """
    source = Path(yardsticks.__file__).read_bytes()
    assert hashlib.sha256(source).hexdigest() == FROZEN


@pytest.mark.parametrize("phase", ["forward", "forward-backward", "train-step"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_can_be_repeated_and_undone(kind, phase):
    shape = {"linear": (3, 8), "convolution": (2, 8, 4, 4)}.get(kind, (2, 5, 8))
    work = YardstickStep(kind, 8, 2, torch.randn(shape, generator=torch.Generator().manual_seed(0)), phase)
    before = [parameter.detach().clone() for parameter in work.parameters]
    assert work.output().shape == shape
    for _ in range(2):
        work.step()
        moved = any(not torch.equal(a, b) for a, b in zip(before, work.parameters, strict=True))
        assert moved == (phase == "train-step")
        work.restore()
    assert all(torch.equal(a, b) for a, b in zip(before, work.parameters, strict=True))


def test_weights_do_not_depend_on_what_was_drawn_before():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = YardstickStep("linear", 4, 1, torch.zeros(1, 4), "forward")
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(3)
    again = YardstickStep("linear", 4, 1, torch.zeros(1, 4), "forward")
    assert all(torch.equal(a, b) for a, b in zip(first.parameters, again.parameters, strict=True))


@pytest.mark.parametrize("family", families.names())
def test_every_family_has_one(family):
    made = make_family(family)
    assert made.yardstick in KINDS
    width = 8
    YardstickStep(made.yardstick, width, 1, made.example(2, width), "forward-backward").step()

"""Families and widths that a block is not for: plans, networks and runs leave them out, and say why."""

import pytest

from highway_bench.blocks import blocks, register_block
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.network import build
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from highway_bench.stem_head import Incompatible
from highway_bench.tasks import Skip
from highway_bench.tasks.from_cell import cell_stack
from tests.cells import cell


@pytest.fixture(autouse=True)
def halves():
    class Halves(blocks.get("highway").cls):  # type: ignore[misc]
        pass

    about = {"equation": "y", "source": "a test", "summary": "two halves", "gates": 1}
    register_block("halves", families=("dense*", "attention"), width_step=2, **about)(Halves)
    yield
    blocks.unregister("halves")


def plan(**selection):
    return Plan.of("smoke", Selection.of("throughput", **{"device": "cpu", "block": ["plain", "halves"], **selection}))


def test_other_families_are_left_out():
    found = plan(family=["dense", "mlp", "conv", "attention"])
    assert {one.family for one in found.cells if one.block == "halves"} == {"dense", "attention"}
    assert {one.family for one in found.cells if one.block == "plain"} == {"dense", "mlp", "conv", "attention"}
    assert "halves is left out of conv, mlp: it is for families dense*, attention" in found.remarks
    with pytest.raises(BadInput, match=r"^block 'halves' cannot join 'mlp': it is for families dense\*, attention$"):
        plan(family="mlp", block="halves")


def test_a_matched_width_is_a_multiple_of_the_step():
    """In attention with four heads, half of a width must have four heads too."""
    for family, step in (("dense", 2), ("attention", 8)):
        assert blocks.get("halves").step(make_family(family)) == step
        widths = {one.width for one in plan(family=family, width=36).cells if one.block == "halves"}
        assert widths
        assert all(width % step == 0 for width in widths)


def test_another_equal_width_is_left_out():
    found = plan(family="attention", width=[12, 16], match="width")
    assert {(one.block, one.width) for one in found.cells} == {("plain", 12), ("plain", 16), ("halves", 16)}
    assert "halves is left out of attention: it needs a width that 8 divides, not 12" in found.remarks
    with pytest.raises(BadInput, match="needs a width that 8 divides, not 12"):
        plan(family="attention", width=12, match="width", block="halves")


@pytest.mark.parametrize(("family", "width"), [("mlp", 8), ("attention", 12)])
def test_a_run_skips_a_cell_of_it(family, width):
    with pytest.raises(Incompatible, match=f"block 'halves' cannot join '{family}'"):
        build("halves", family, width=width, depth=2)
    with pytest.raises(Skip, match=r"it (is for families|needs a width)"):
        cell_stack(cell("throughput", "halves", family, width=width))

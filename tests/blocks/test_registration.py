"""How a block comes into the registry: the decorator, a variant, its options, and what is refused."""

import pytest

from highway_bench.blocks import blocks, register_block, register_variant
from highway_bench.blocks.highway import Highway
from highway_bench.blocks.plain import Plain
from highway_bench.declared import declared
from highway_bench.errors import BadInput
from highway_bench.network import build


@pytest.fixture
def variant():
    register_variant("highway-shut", Highway, summary="gates start at -5", gate_bias=-5.0)
    yield "highway-shut"
    blocks.unregister("highway-shut")


def test_a_variant_is_the_block_with_other_options(variant):
    spec, base = blocks.get(variant), blocks.get("highway")
    assert (spec.cls, spec.gates, spec.equation, spec.source) == (base.cls, base.gates, base.equation, base.source)
    assert (spec.summary, spec.options) == ("gates start at -5", {"gate_bias": -5.0})
    assert spec.group == "own"
    assert blocks.module_of(variant) == "highway_bench.blocks.highway"
    bias = build(variant, "dense", width=4, depth=2).joins[0].maps.product.bias  # type: ignore[union-attr,index]
    assert bias.tolist() == [0.0] * 4 + [-5.0] * 4


def test_a_variant_of_the_baseline_is_no_baseline():
    register_variant("plain-again", Plain, summary="")
    try:
        assert not blocks.get("plain-again").baseline
    finally:
        blocks.unregister("plain-again")


def test_options_that_a_block_lacks_are_refused():
    with pytest.raises(BadInput, match="bias"):
        register_variant("highway-odd", Highway, summary="", bias=1.0)
    assert "highway-odd" not in blocks
    with pytest.raises(BadInput, match="gate_bias"):
        build("plain", "dense", width=4, depth=1, block_options={"gate_bias": 1.0})


@pytest.mark.parametrize(
    ("thing", "about", "says"),
    [(len, {}, "subclass"), (dict, {}, "subclass"), (Plain, {"equation": "y"}, "source, summary")],
)
def test_what_cannot_be_registered(thing, about, says):
    with pytest.raises(BadInput, match=says):
        register_block("odd", **about)(thing)
    assert "odd" not in blocks


def test_groups_are_read_from_the_source():
    """The history follows blocks and families by them."""
    of_blocks = {entry["name"]: entry.get("group", "own") for entry in declared("blocks")}
    assert of_blocks == {name: blocks.get(name).group for name in of_blocks}


def test_a_class_builds_as_its_name_does():
    named, given = (build(block, "dense", width=4, depth=2, seed=1) for block in ("highway", Highway))
    assert [p.tolist() for p in named.parameters()] == [p.tolist() for p in given.parameters()]

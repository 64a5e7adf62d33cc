"""How blocks start: by published constants, as another block, or by their depth; and what they refuse."""

from typing import cast

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.blocks.layerscale import first_scale
from highway_bench.blocks.mhc import sinkhorn
from highway_bench.errors import BadInput, UnknownName
from highway_bench.families import family as family_of
from highway_bench.families import make_family
from highway_bench.network import Stack, build
from tests.combinations import CORE, FEW, MODERN, families_of

WIDTH, DEPTH = 8, 3
FAMILIES = [*FEW, "conv"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "block", [name for name in blocks if blocks.get(name).init_state in ("base", "mean") and name != "pre-norm"]
)
def test_a_block_that_starts_as_pre_norm(block, family):
    """The blocks take the same parts in the same order, so one seed gives them the same weights of H."""
    x = make_family(family).example(3, WIDTH, seq_len=5).double()
    here, there = (cast(Stack, build(name, family, width=WIDTH, depth=DEPTH, seed=5)) for name in (block, "pre-norm"))
    for mine, other in zip(here.joins, there.joins, strict=True):
        mine.transform.load_state_dict(other.transform.state_dict())
    if block.startswith(("mhc", "hc-identity")):
        for part in here.modules():
            if hasattr(part, "maps"):
                nn.init.zeros_(part.maps.weight)  # the small random part of the start
    near = 2e-3 if block.startswith(("mhc", "hc", "attn")) else 1e-12  # the last norm's ε counts for other sizes
    torch.testing.assert_close(here.double()(x), there.double()(x), rtol=near, atol=near)


@pytest.mark.parametrize("family", FAMILIES)
def test_rezero_starts_as_the_identity(family):
    x = make_family(family).example(3, WIDTH, seq_len=5)
    assert torch.equal(build("rezero", family, width=WIDTH, depth=DEPTH, seed=1)(x), x)


def test_layerscale_starts_by_its_depth_and_is_pre_norm_at_one():
    assert [first_scale(depth) for depth in (1, 18, 19, 24, 25)] == [0.1, 0.1, 1e-5, 1e-5, 1e-6]
    here, there = (build(name, "dense", width=WIDTH, depth=DEPTH, seed=5) for name in ("layerscale", "pre-norm"))
    for join in cast(Stack, here).joins:
        nn.init.ones_(join.scale)
    x = torch.randn(3, WIDTH)
    torch.testing.assert_close(here(x), there(x))


def test_the_values_of_one_layer_are_mixed_with_nothing_and_none_are_kept():
    """A second forward pass, of another batch, begins with its own values."""
    for depth in (1, 2):
        here, there = (
            cast(Stack, build(name, "attention", width=WIDTH, depth=depth, seed=5))
            for name in ("value-residual", "pre-norm")
        )
        x = torch.randn(3, 5, WIDTH)
        assert torch.equal(here(x), there(x)) == (depth == 1)
        expected = here(x[:1])
        here(x)
        torch.testing.assert_close(here(x[:1]), expected, rtol=0, atol=0)
        assert all(join.first == [] for join in here.joins)


def test_a_block_that_needs_attention_is_refused_elsewhere():
    for family in ("dense", family_of(user_layer)):
        with pytest.raises(BadInput, match="value-residual"):
            build("value-residual", family, width=WIDTH, depth=1)


@pytest.mark.parametrize(("layers", "alpha", "beta"), [(6, 1.861, 0.380), (12, 2.213, 0.319), (50, 3.162, 0.224)])
def test_deepnorms_published_constants(layers, alpha, beta):
    deep, usual = (
        cast(Stack, build(name, "transformer", width=WIDTH, depth=layers, seed=1)) for name in ("deepnorm", "post-norm")
    )
    assert deep.joins[0].alpha == pytest.approx(alpha, abs=1e-3)
    attention, reference = deep.joins[0].transform, usual.joins[0].transform
    for part, scale in (("outward.weight", beta), ("inward.weight", None)):
        ratio = attention.get_parameter(part) / reference.get_parameter(part)
        expected = torch.full_like(ratio, scale or 1.0)
        if scale is None:
            expected[2 * WIDTH :] = beta  # values, and not queries and keys
        torch.testing.assert_close(ratio, expected, rtol=1e-3, atol=1e-3)
    for index in (0, 2):
        ratio = deep.joins[1].transform[index].weight / usual.joins[1].transform[index].weight
        torch.testing.assert_close(ratio, torch.full_like(ratio, beta), rtol=2e-3, atol=1e-3)


def test_mixing_matrices_are_doubly_stochastic():
    matrix = sinkhorn(torch.randn(4, 4, 5, 7))
    assert float(matrix.detach().min()) >= 0
    for axis in (0, 1):
        torch.testing.assert_close(matrix.sum(axis), torch.ones(4, 5, 7), rtol=1e-3, atol=1e-3)
    lite = cast(Stack, build("mhc-lite", "dense", width=WIDTH, depth=1))
    mixed = lite.joins[0].mix(torch.randn(24, 3))
    for axis in (0, 1):
        torch.testing.assert_close(mixed.sum(axis), torch.ones(4, 3))


@pytest.mark.parametrize(
    ("block", "read", "write", "diagonal", "other"),
    [
        ("mhc", (0.5, 0.5), (1.0, 1.0), 0.25, 0.25),
        ("mhc-onehot", (0.731, 0.5), (1.462, 1.462), 0.475, 0.175),
        ("mhc-diag", (0.731, 0.269), (1.462, 0.538), 0.999, 3.4e-4),
    ],
)
def test_public_starts_of_mhc(block, read, write, diagonal, other):
    """The second connection's own stream is stream 1."""
    join = cast(Stack, build(block, "dense", width=WIDTH, depth=2)).joins[1]
    logits = join.bias.detach()
    own, rest = torch.sigmoid(logits[:4])[[1, 0]].tolist()
    assert (own, rest) == pytest.approx(read, abs=1e-3)
    assert (2 * torch.sigmoid(logits[4:8]))[[1, 0]].tolist() == pytest.approx(write, abs=1e-3)
    matrix = sinkhorn(logits[8:].view(4, 4))
    assert (float(matrix[0, 0]), float(matrix[0, 1])) == pytest.approx((diagonal, other), rel=2e-2)


@pytest.mark.parametrize("block", [*CORE, *MODERN])
def test_every_start_can_be_built_and_the_first_is_the_default(block):
    spec = blocks.get(block)
    assert 1 <= len(spec.starts) <= 2
    for family in families_of(block, "conv"):
        default = build(block, family, width=WIDTH, depth=9, seed=3).state_dict()
        for start in spec.starts:
            network = build(block, family, width=WIDTH, depth=9, start=start.name, seed=3)
            begun = network.state_dict()
            fixed = any(type(part).__name__ == "FixedScale" for part in network.modules())
            same = begun.keys() == default.keys() and all(torch.equal(begun[name], default[name]) for name in begun)
            assert same == (start is spec.starts[0]) or fixed


def test_published_gate_biases():
    def bias(family, depth, block="highway"):
        stack = cast(Stack, build(block, family, width=4, depth=depth, start="published"))
        return float(stack.joins[0].maps.product.bias[-1].detach())

    assert bias("dense", 50) == -2.0
    assert [bias("conv", depth) for depth in (5, 10, 20, 30)] == [-1.0, -1.0, -2.0, -3.0]
    assert bias("dense", 50, "highway-free") == 2.0


@pytest.mark.parametrize(
    ("block", "options"),
    [
        ("scaled", {"skip": "half"}),
        ("scaled", {"branch": True}),
        ("branch-scaled", {"power": "much"}),
        ("output-norm", {"output_gain": True}),
        ("highway", {"gate_bias": "x"}),
        ("highway", {"gate_bias": True}),
        ("highway", {"gate_bias": float("nan")}),
        ("gru-gate", {"gate_bias": "open"}),
        ("x0-mix", {"mix": "all"}),
        ("mhc", {"mixing": "none"}),
        ("attn-residual", {"blocks": -1}),
    ],
)
def test_options_that_cannot_be(block, options):
    with pytest.raises(BadInput, match=next(iter(options)).rpartition("_")[2]):
        build(block, "dense", width=4, depth=1, block_options=options)


def test_starts_that_cannot_be():
    with pytest.raises(UnknownName, match="rezero"):
        build("rezero", "dense", width=4, depth=1, start="depth-aware")
    with pytest.raises(BadInput, match="orthogonal"):
        build("plain", family_of(user_layer), width=4, depth=1, start="depth-aware")


def test_a_pre_norm_stream_grows_by_one_variance_a_layer():
    """E|x_l|²/d = 1 + l where every branch is an independent linear map that keeps the variance."""
    depth, width = 40, 64
    linear = {"activation": "identity"}
    stack = cast(Stack, build("pre-norm", "dense", family_options=linear, width=width, depth=depth, seed=3)).double()
    state = torch.randn(256, width, dtype=torch.float64)
    energy = [1.0]
    for join in stack.joins:
        state = join(state)
        energy.append(float(state.detach().square().mean()))
    slope = (energy[-1] - energy[0]) / depth
    assert slope == pytest.approx(1.0, rel=0.15)
    halfway = (energy[depth // 2] - energy[0]) / (depth // 2)
    assert halfway == pytest.approx(slope, rel=0.2)  # a straight line, not a power


def user_layer(width):
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())

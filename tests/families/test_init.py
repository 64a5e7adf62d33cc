"""How maps start: every slice of a fused product as if it stood alone, by its own fans."""

import math

import pytest
import torch

from highway_bench.families import Gate, Site, families, make_family
from highway_bench.network import build

TRANSFORMS = [name for name in families.names() if name != "transformer"]


def he(fan_in):
    return math.sqrt(2 / fan_in)


def glorot(fan_in, fan_out):
    return math.sqrt(2 / (fan_in + fan_out))


def spread(weight):
    return float(weight.detach().std())


def about(value):
    return pytest.approx(value, rel=0.05)


def transform_family(name, **options):
    return make_family(name, **options)


@pytest.mark.parametrize("gates", [0, 1, 2])
@pytest.mark.parametrize(("in_width", "width"), [(64, 64), (48, 96)])
@pytest.mark.parametrize(("family", "positions"), [("dense", 1), ("conv", 9)])
def test_each_slice_of_a_fused_product_has_its_own_scale(family, positions, in_width, width, gates):
    built = transform_family(family)
    maps = built.maps(Site(built, width, in_width=in_width, depth=5), [Gate(), Gate(carries=True)][:gates])
    weights, biases = maps.product.weight.detach().split(width), maps.product.bias.detach().split(width)
    assert len(weights) == 1 + gates
    assert spread(weights[0]) == about(he(positions * in_width))
    for weight in weights[1:]:
        assert spread(weight) == about(glorot(positions * in_width, positions * width))
    starts = [0.0, -math.log(5), math.log(5)][: 1 + gates]
    for bias, start in zip(biases, starts, strict=True):
        assert torch.equal(bias, torch.full_like(bias, start))


@pytest.mark.parametrize(("family", "positions"), [("dense", 1), ("conv", 9)])
def test_a_map_before_tanh_is_glorots(family, positions):
    built = transform_family(family, activation="tanh")
    weight = next(built.transform(Site(built, 64)).parameters())
    assert spread(weight) == about(glorot(64 * positions, 64 * positions))


@pytest.mark.parametrize(("family", "inner", "positions"), [("dense-pair", 1, 1), ("mlp", 4, 1), ("conv-pair", 1, 9)])
def test_a_branch_that_ends_linear_is_he_inside_and_glorot_at_its_end(family, inner, positions):
    built = transform_family(family)
    first, _, last = built.transform(Site(built, 64))
    fan, inside = 64 * positions, 64 * inner * positions
    assert spread(first.weight) == about(he(fan))
    assert spread(last.weight) == about(glorot(inside, fan))
    assert not first.bias.any()
    assert not last.bias.any()


def test_query_key_and_value_each_have_a_square_maps_scale():
    built = transform_family("attention")
    for part in built.transform(Site(built, 64)).inward.weight.split(64):
        assert spread(part) == about(glorot(64, 64))


@pytest.mark.parametrize("family", [name for name in TRANSFORMS if name not in ("dense", "conv", "resnet")])
@pytest.mark.parametrize("gates", [1, 2])
def test_gates_beside_a_transform_have_their_own_scale(family, gates):
    built = transform_family(family)
    maps = built.maps(Site(built, 64, depth=20), [Gate(), Gate(bias=0.5, carries=True)][:gates])
    weights = maps.gate.weight.split(64)
    for weight in weights:
        assert spread(weight) == about(glorot(64, 64))
    starts = maps.gate.bias.split(64)
    assert float(starts[0].detach().unique()) == pytest.approx(-math.log(20))
    assert [float(start.detach().unique()) for start in starts[1:]] == [0.5] * (gates - 1)


@pytest.mark.parametrize(("connections", "closed"), [(1, -1.0), (2, -1.0), (3, -math.log(3)), (50, -math.log(50))])
def test_the_automatic_gate_bias(connections, closed):
    site = Site(transform_family("dense"), 4, depth=connections)
    assert Gate().start(site) == pytest.approx(closed)
    assert Gate(carries=True).start(site) == pytest.approx(-closed)
    assert Gate(bias=-7).start(site) == Gate(bias=-7, carries=True).start(site) == -7.0


@pytest.mark.parametrize(
    "family", [name for name in families.names() if "scaled-branch" in families.get(name).cls.inits]
)
@pytest.mark.parametrize("block", ["residual", "highway-free"])
def test_a_scaled_branch_is_divided_and_nothing_else(block, family):
    """Of each connection, H and its gates' values on one input."""

    def branch_and_gates(init):
        stack = build(block, family, width=8, depth=9, family_options={"init": init}, seed=3)
        return [join.maps(x) if hasattr(join, "maps") else (join.transform(x),) for join in stack.joins]

    x = make_family(family).example(3, 8, seq_len=5)
    default, scaled = map(branch_and_gates, ("default", "scaled-branch"))
    for (h, *gates), (small, *others) in zip(default, scaled, strict=True):
        torch.testing.assert_close(small * math.sqrt(len(default)), h, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(others, gates, rtol=0, atol=0)


@pytest.mark.parametrize("family", ["dense", "conv"])
def test_orthogonal_rows_with_the_rectifiers_gain(family):
    built = transform_family(family, init="orthogonal")
    weight = built.maps(Site(built, 12), [Gate()]).product.weight
    rows = weight[:12].flatten(1).double()
    torch.testing.assert_close(rows @ rows.T, 2 * torch.eye(12, dtype=torch.float64), atol=1e-5, rtol=0)
    assert spread(weight[12:]) > 0


@pytest.mark.parametrize(("activation", "deviation"), [("relu", he(64)), ("tanh", glorot(64, 64))])
def test_uniform_weights_of_the_defaults_variance(activation, deviation):
    built = transform_family("dense", init="uniform", activation=activation)
    weight = next(built.transform(Site(built, 64)).parameters()).detach()
    assert spread(weight) == about(deviation)
    assert float(weight.abs().max()) <= math.sqrt(3) * deviation + 1e-6


def test_small_weights_whatever_the_fan():
    built = transform_family("dense", init="small")
    for width in (32, 256):
        weight = next(built.transform(Site(built, width)).parameters()).detach()
        assert spread(weight) == about(0.01)


def test_an_orthogonal_lstm_is_orthogonal_gate_by_gate():
    built = transform_family("bilstm", init="orthogonal")
    lstm = built.transform(Site(built, 8)).lstm
    for name, parameter in lstm.named_parameters():
        if name.startswith("bias"):
            assert not parameter.any()
            continue
        for gate in parameter.detach().double().chunk(4):  # (4, in) of an inner width of 4
            torch.testing.assert_close(gate @ gate.T, torch.eye(4, dtype=torch.float64), atol=1e-5, rtol=0)

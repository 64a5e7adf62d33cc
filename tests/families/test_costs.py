"""Parameters and FLOP of every family: the closed forms of the specifications against sums written out here."""

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.families.parts import count_parameters
from highway_bench.network import build

STEPS, PIXELS = 5, 16 * 16
EXTRAS = {"plain": (0, 0, 0), "highway-free": (2, 0, 0), "pre-norm": (0, 1, 1)}
"""Gates a connection, norms a connection, norms at the end."""

# Of one layer of width d: parameters of H, of a gate (affine maps of weights and biases), and connections.
PARAMETERS = {
    "dense": (lambda d: d * d + d, lambda d: d * d + d, 1),
    "dense-pair": (lambda d: 2 * d * d + 2 * d, lambda d: d * d + d, 1),
    "conv": (lambda d: 9 * d * d + d, lambda d: 9 * d * d + d, 1),
    "conv-pair": (lambda d: 18 * d * d + 2 * d, lambda d: d * d + d, 1),
    "resnet": (lambda d: 18 * d * d + 4 * d, lambda d: 18 * d * d + 4 * d, 1),
    "bilstm": (lambda d: 2 * (4 * (d // 2) * (d + d // 2) + 8 * (d // 2)), lambda d: d * d + d, 1),
    "mlp": (lambda d: 8 * d * d + 5 * d, lambda d: d * d + d, 1),
    "attention": (lambda d: 4 * d * d + 4 * d, lambda d: d * d + d, 1),
    "transformer": (lambda d: 12 * d * d + 9 * d, lambda d: 2 * (d * d + d), 2),
}

# Of one layer and one item: multiply-adds of H and of the gate of each connection.
MULTIPLY_ADDS = {
    "dense": (lambda d: d * d, lambda d: d * d),
    "dense-pair": (lambda d: 2 * d * d, lambda d: d * d),
    "conv": (lambda d: 9 * d * d * PIXELS, lambda d: 9 * d * d * PIXELS),
    "conv-pair": (lambda d: 18 * d * d * PIXELS, lambda d: d * d * PIXELS),
    "resnet": (lambda d: 18 * d * d * PIXELS, lambda d: 18 * d * d * PIXELS),
    "bilstm": (lambda d: 2 * 4 * (d // 2) * (d + d // 2) * STEPS, lambda d: d * d * STEPS),
    "mlp": (lambda d: 8 * d * d, lambda d: d * d),
    "attention": (lambda d: 4 * d * d * STEPS + 2 * d * STEPS * STEPS, lambda d: d * d * STEPS),
    "transformer": (lambda d: 12 * d * d * STEPS + 2 * d * STEPS * STEPS, lambda d: 2 * d * d * STEPS),
}
COMBINATIONS = [pytest.param(block, family, id=f"{block}-in-{family}") for block in EXTRAS for family in PARAMETERS]


@pytest.mark.parametrize(("block", "family"), COMBINATIONS)
def test_parameters_and_multiply_adds(block, family):
    """That what is built has as many is in the contract of blocks."""
    built, spec, (gates, norms, last) = make_family(family), blocks.get(block), EXTRAS[block]
    transform, gate, connections = PARAMETERS[family]
    width, depth = 12, 3
    layer = transform(width) + gates * gate(width) + norms * connections * 2 * width
    assert spec.stack_parameters(built, width, depth) == depth * layer + last * 2 * width
    transform, gate = MULTIPLY_ADDS[family]
    assert spec.layer_flops(built, 8, built.positions(STEPS)) == 2 * (transform(8) + gates * gate(8))


@pytest.mark.parametrize(
    ("family", "options", "parameters"),
    [
        ("conv", {"kernel": 5}, 25 * 64 + 8),
        ("conv-pair", {"kernel": 1}, 2 * (64 + 8)),
        ("mlp", {"expansion": 2}, 4 * 64 + 2 * 8 + 8),
        ("transformer", {"expansion": 1}, 6 * 64 + 6 * 8),
        ("attention", {"heads": 8, "causal": True}, 4 * 64 + 4 * 8),
    ],
)
def test_options_that_change_the_cost(family, options, parameters):
    built = make_family(family, **options)
    assert sum(p.numel() for p in build("plain", built, width=8, depth=1).parameters()) == parameters
    assert blocks.get("plain").layer_parameters(built, 8) == parameters


def test_parameters_without_a_shape_are_not_counted():
    lazy = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(BadInput, match="Sequential"):
        count_parameters(lazy)
    lazy(torch.zeros(1, 2))
    assert count_parameters(lazy) == 9

"""A layer through time: its recurrence, one set of weights for all steps, and what it refuses."""

from __future__ import annotations

import pytest
import torch

from highway_bench.architectures import architectures
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.families.parts import count_parameters
from highway_bench.stem_head import Incompatible

ARCHITECTURE = architectures.get("through-time")
STEPS, WIDTH = 5, 8
TANH = make_family("dense", activation="tanh")


def network(block: str, steps: int = STEPS) -> torch.nn.Module:
    return ARCHITECTURE.build(block, TANH, width=WIDTH, depth=steps, inputs=(steps, 2), seed=1)


@pytest.mark.parametrize("block", ["plain", "residual", "highway"])
def test_the_recurrence(block: str) -> None:
    built = network(block)
    x = torch.randn(3, STEPS, 2)
    layer, head = built[0].layer, built[1]
    h = torch.zeros(3, WIDTH - 2)
    for step in range(STEPS):
        z = torch.cat((h, x[:, step]), dim=1)
        product = torch.nn.functional.linear(z, *(dict(layer.named_parameters())[name] for name in names(layer)))
        g = product[:, :WIDTH].tanh()
        t = product[:, WIDTH:].sigmoid()
        y = {
            "plain": lambda g=g: g,
            "residual": lambda g=g, z=z: z + g,
            "highway": lambda g=g, z=z, t=t: g * t + z * (1 - t),
        }
        h = y[block]()[:, : WIDTH - 2]
    torch.testing.assert_close(built(x), head(h).squeeze(1))


def names(layer: torch.nn.Module) -> list[str]:
    """Weight and bias of the layer's one product."""
    return sorted((name for name, _ in layer.named_parameters()), key=lambda name: name.endswith("bias"))


def test_one_set_of_weights_and_every_step_counts() -> None:
    short, long = network("plain", 5), network("plain", 9)
    assert count_parameters(short) == count_parameters(long) == WIDTH * WIDTH + WIDTH + (WIDTH - 2) + 1
    x = torch.randn(2, 9, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(long(x).sum(), x)
    assert gradient.abs().amin(-1).gt(0).all()


def test_the_gates_bias_is_that_of_a_network_as_deep_as_the_series_is_long() -> None:
    built = network("highway", 20)
    bias = dict(built[0].layer.named_parameters())["maps.product.bias"][WIDTH:]
    torch.testing.assert_close(bias, torch.full((WIDTH,), -torch.tensor(20.0).log().item()))


def test_what_it_refuses() -> None:
    with pytest.raises(Incompatible, match="bilstm"):
        ARCHITECTURE.build("plain", make_family("bilstm"), width=8, depth=5, inputs=(5, 2))
    with pytest.raises(Incompatible, match="changes the stream"):
        ARCHITECTURE.build("mhc", TANH, width=8, depth=5, inputs=(5, 2))
    with pytest.raises(BadInput, match="unrolls to 5 layers"):
        ARCHITECTURE.build("plain", TANH, width=8, depth=4, inputs=(5, 2))
    with pytest.raises(BadInput, match="no room for a state"):
        ARCHITECTURE.build("plain", TANH, width=2, depth=5, inputs=(5, 2))

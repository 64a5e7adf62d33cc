"""The highway blocks against their equations and against other ways to write them, in float64."""

from __future__ import annotations

import math
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from highway_bench.families import families, make_family
from highway_bench.families.parts import FusedMaps
from highway_bench.measure.memory import saved_activations
from highway_bench.network import Stack, build
from highway_bench.training.stacked import NotStackable, Stacked

FAMILIES = families.names()
WIDTH = 8


def layer(block: str, family: str, **options: float) -> tuple[nn.Module, Tensor]:
    """One layer of ``block`` and an input for it, in float64."""
    made = make_family(family)
    stack = cast(Stack, build(block, family, width=WIDTH, depth=1, block_options=options, seed=1)).double()
    return stack, made.example(3, WIDTH, seq_len=5).double()


def gate_slices(stack: nn.Module, number: int) -> list[tuple[Tensor, Tensor]]:
    """(weight, bias) of gate ``number`` (from 1) in every join, whether fused with H or not; of a pair of convolutions,
    those of its last norm."""
    found = []
    for join in cast(Stack, stack).joins:
        fused = isinstance(join.maps, FusedMaps)
        if not fused and (pairs := pairs_of(join.maps.gate)):
            found.append((pairs[number - 1][-1].weight.data, pairs[number - 1][-1].bias.data))
            continue
        module = join.maps.product if fused else join.maps.gate
        place = number if fused else number - 1
        rows = slice(place * WIDTH, (place + 1) * WIDTH)
        found.append((module.weight.data[rows], module.bias.data[rows]))
    return found


def pairs_of(gate: nn.Module) -> list[nn.Sequential]:
    """The pairs of convolutions that gates are, if they are such."""
    parts = [gate] if isinstance(gate, nn.Sequential) else getattr(gate, "parts", [])
    return cast(list[nn.Sequential], list(parts))


def set_gate(stack: nn.Module, number: int, bias: float) -> None:
    """Make gate ``number`` constant: no weights, and this bias."""
    for weight, start in gate_slices(stack, number):
        weight.zero_()
        start.fill_(bias)


def transform_of(join: nn.Module, x: Tensor) -> Tensor:
    h: Tensor = join.maps(x)[0]
    return h


@pytest.mark.parametrize("family", FAMILIES)
def test_a_closed_gate_carries_and_an_open_one_transforms(family: str) -> None:
    """Eq. 4: y = x where T = 0, y = H(x) where T = 1."""
    stack, x = layer("highway", family)
    set_gate(stack, 1, -30.0)
    torch.testing.assert_close(stack(x), x, rtol=0, atol=1e-10)
    set_gate(stack, 1, 30.0)
    expected = x
    for join in stack.joins:
        expected = transform_of(join, expected)
    torch.testing.assert_close(stack(x), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_free_carry_gate_tied_to_the_transform_gate_is_the_coupled_block(family: str) -> None:
    """C = σ(−a) = 1 − σ(a): the carry gate's weights are the transform gate's, negated."""
    coupled, x = layer("highway", family)
    free, _ = layer("highway-free", family)
    for join, source in zip(free.joins, coupled.joins, strict=True):
        if isinstance(join.maps, FusedMaps):
            for name in ("weight", "bias"):
                both = getattr(source.maps.product, name).data
                getattr(join.maps.product, name).data.copy_(torch.cat([both, -both[WIDTH:]]))
        else:
            join.maps.transform.load_state_dict(source.maps.transform.state_dict())
            if pairs := pairs_of(join.maps.gate):
                for pair in pairs:
                    pair.load_state_dict(source.maps.gate.state_dict())
                for name in ("weight", "bias"):
                    getattr(pairs[1][-1], name).data.neg_()
                continue
            for name in ("weight", "bias"):
                gate = getattr(source.maps.gate, name).data
                getattr(join.maps.gate, name).data.copy_(torch.cat([gate, -gate]))
    torch.testing.assert_close(free(x), coupled(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_free_stack_starts_with_gates_that_add_up_to_one(family: str) -> None:
    stack = build("highway-free", family, width=WIDTH, depth=20)
    transform, carry = gate_slices(stack, 1), gate_slices(stack, 2)
    expected = math.log(20 * len(make_family(family).sublayers))
    for (_, t), (_, c) in zip(transform, carry, strict=True):
        torch.testing.assert_close(t, torch.full_like(t, -expected))
        torch.testing.assert_close(torch.sigmoid(t) + torch.sigmoid(c), torch.ones_like(t))


class SeparateProjections(nn.Module):
    """Eq. 3 as it is read: H and T are layers of their own, C = 1 − T."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.h = nn.Linear(width, width, dtype=torch.float64)
        self.t = nn.Linear(width, width, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        t = torch.sigmoid(self.t(x))
        return torch.relu(self.h(x)) * t + x * (1 - t)


def test_separate_projections_have_the_same_output_and_gradients() -> None:
    stack, x = layer("highway", "dense")
    separate = SeparateProjections(WIDTH)
    product = stack.joins[0].maps.product
    separate.h.weight.data, separate.t.weight.data = product.weight.data.split(WIDTH)
    separate.h.bias.data, separate.t.bias.data = product.bias.data.split(WIDTH)
    torch.testing.assert_close(stack(x), separate(x), rtol=1e-12, atol=1e-13)
    cotangent = torch.randn_like(x)
    fused = torch.autograd.grad(stack(x), [product.weight, product.bias], cotangent)
    apart = torch.autograd.grad(separate(x), list(separate.parameters()), cotangent)
    torch.testing.assert_close(fused[0], torch.cat([apart[0], apart[2]]), rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(fused[1], torch.cat([apart[1], apart[3]]), rtol=1e-12, atol=1e-13)


def test_the_free_convolutional_block_against_three_convolutions() -> None:
    stack, x = layer("highway-free", "conv")
    product = stack.joins[0].maps.product
    h, t, c = (
        nn.functional.conv2d(x, weight, bias, padding=1)
        for weight, bias in zip(product.weight.split(WIDTH), product.bias.split(WIDTH), strict=True)
    )
    torch.testing.assert_close(
        stack(x), torch.relu(h) * torch.sigmoid(t) + x * torch.sigmoid(c), rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("value", [-3.0, 0.5])
def test_a_given_bias_overrides_the_automatic_one(value: float) -> None:
    stack, _ = layer("highway", "mlp", gate_bias=value)
    assert (gate_slices(stack, 1)[0][1] == value).all()
    free, _ = layer("highway-free", "mlp", gate_bias=value, carry_bias=1.5)
    assert (gate_slices(free, 1)[0][1] == value).all()
    assert (gate_slices(free, 2)[0][1] == 1.5).all()


@pytest.mark.parametrize("family", ["dense", "conv", "transformer", "bilstm"])
def test_a_layer_that_recomputes_saves_its_input_alone(family: str) -> None:
    """With the same outputs and gradients. The first layer's input exists in any case."""
    written, x = layer("highway", family)
    recomputing, _ = layer("highway", family, recompute=True)
    recomputing.load_state_dict(written.state_dict())
    cotangent = torch.randn_like(x)
    results = [
        (stack(x), *torch.autograd.grad(stack(x), list(stack.parameters()), cotangent))
        for stack in (written, recomputing)
    ]
    torch.testing.assert_close(*results, rtol=0, atol=1e-12)
    deep = build("highway", family, width=WIDTH, depth=5, block_options={"recompute": True}).double()
    joins = 5 * len(make_family(family).sublayers)
    saved = saved_activations(lambda: deep(x), exclude=(deep, x))
    assert saved == (joins - 1) * x.numel() * x.element_size()


@pytest.mark.parametrize("family", ["dense", "conv"])
def test_a_layer_saves_three_numbers_a_feature(family: str) -> None:
    """x, H and T: nothing else of the gate's arithmetic."""
    stack = build("highway", family, width=WIDTH, depth=5)
    x = make_family(family).example(3, WIDTH)
    saved = saved_activations(lambda: stack(x), exclude=(stack, x))
    assert saved == (3 * 5 - 1) * x.numel() * x.element_size()


def test_networks_that_recompute_train_one_by_one() -> None:
    """torch has no batching rule for recomputation."""
    networks = [build("highway", "dense", width=4, depth=2, block_options={"recompute": True}) for _ in range(2)]
    with pytest.raises(NotStackable):
        Stacked(networks, lambda network, x: network(x).sum(), [torch.randn(2, 3, 4)])

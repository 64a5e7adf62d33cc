"""The highway blocks: another way to write them, their gates' biases, and what they save for the backward pass."""

from typing import cast

import pytest
import torch
from torch import nn

from highway_bench.families import make_family
from highway_bench.measure.memory import saved_activations
from highway_bench.network import Stack, build
from highway_bench.training.stacked import NotStackable, Stacked

WIDTH = 8


def layer(block, family, **options):
    """One layer of ``block`` and an input for it, in float64."""
    made = make_family(family)
    stack = cast(Stack, build(block, family, width=WIDTH, depth=1, block_options=options, seed=1)).double()
    return stack, made.example(3, WIDTH, seq_len=5).double()


class SeparateProjections(nn.Module):
    """Eq. 3 as it is read: H and T are layers of their own, C = 1 − T."""

    def __init__(self, width):
        super().__init__()
        self.h = nn.Linear(width, width, dtype=torch.float64)
        self.t = nn.Linear(width, width, dtype=torch.float64)

    def forward(self, x):
        t = torch.sigmoid(self.t(x))
        return torch.relu(self.h(x)) * t + x * (1 - t)


def test_separate_projections_have_the_same_output_and_gradients():
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


def test_given_biases_are_those_of_their_gates():
    free, _ = layer("highway-free", "mlp", gate_bias=-3.0, carry_bias=1.5)
    assert free.joins[0].maps.gate.bias.tolist() == [-3.0] * WIDTH + [1.5] * WIDTH


@pytest.mark.parametrize("family", ["dense", "conv", "transformer", "bilstm"])
def test_a_layer_that_recomputes_saves_its_input_alone(family):
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
def test_a_layer_saves_three_numbers_a_feature(family):
    """x, H and T: nothing else of the gate's arithmetic."""
    stack = build("highway", family, width=WIDTH, depth=5)
    x = make_family(family).example(3, WIDTH)
    saved = saved_activations(lambda: stack(x), exclude=(stack, x))
    assert saved == (3 * 5 - 1) * x.numel() * x.element_size()


def test_networks_that_recompute_train_one_by_one():
    """torch has no batching rule for recomputation."""
    networks = [build("highway", "dense", width=4, depth=2, block_options={"recompute": True}) for _ in range(2)]
    with pytest.raises(NotStackable):
        Stacked(networks, lambda network, x: network(x).sum(), [torch.randn(2, 3, 4)])

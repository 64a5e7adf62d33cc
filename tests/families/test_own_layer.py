"""Layers as people write them: what they are made into, and what that changes."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import Tensor, nn

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.families import family
from highway_bench.families.own_layer import own_layers, rebuilt
from highway_bench.families.parts import count_parameters
from highway_bench.network import build
from highway_bench.stem_head import Incompatible
from tests.combinations import IN_DENSE

WIDTH = 8


def branch(width, *, inplace):
    return nn.Sequential(
        nn.ReLU(inplace), nn.Linear(width, width), nn.ReLU(inplace), nn.Linear(width, width), nn.Tanh()
    )


def writes(width):
    return branch(width, inplace=True)


def copies(width):
    return branch(width, inplace=False)


class WritesWithoutACount(nn.Linear):
    """What is written to ``x.data`` is not counted by the version of x."""

    def forward(self, x: Tensor) -> Tensor:
        x.data.mul_(0.5)
        return super().forward(x)


class WritesInEvaluation(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x if self.training else x.clamp_(-1, 1))


def outcome(block, factory):
    """The output and the gradients of a stack, in float64."""
    network = build(block, family(factory, kind="vector"), width=WIDTH, depth=3, seed=1).double()
    x = torch.randn(5, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = network(x)
    return [y, *torch.autograd.grad(y.square().sum(), list(network.parameters()))]


@pytest.mark.parametrize("block", IN_DENSE)
def test_a_layer_that_writes_to_its_input_computes_what_it_computes_out_of_place(block):
    for written, expected in zip(outcome(block, writes), outcome(block, copies), strict=True):
        torch.testing.assert_close(written, expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("factory", "is_said"),
    [
        (writes, True),
        (copies, False),
        (lambda width: WritesWithoutACount(width, width), True),
        (lambda width: WritesInEvaluation(width, width), True),
        (lambda width: nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True)), False),  # to its own
    ],
)
def test_a_copy_is_an_option_of_the_family_and_so_in_every_row(factory, is_said):
    built = family(factory)
    assert built.options.get("copy_input", False) is is_said
    assert any("writes to its input" in remark for remark in built.remarks) is is_said


def half(width):
    return nn.Sequential(nn.Linear(width, width), nn.GELU()).to(torch.bfloat16)


def double(width):
    return nn.Sequential(nn.Linear(width, width), nn.GELU()).double()


@pytest.mark.parametrize(("factory", "dtype"), [(half, torch.bfloat16), (double, torch.float64)])
@pytest.mark.parametrize("block", ["highway", "hc-dynamic"])
def test_a_network_has_the_dtype_of_its_layers(factory, dtype, block):
    built = family(factory)
    network = build(block, built, width=WIDTH, depth=2, dataset="digits")
    assert {parameter.dtype for parameter in network.parameters()} == {dtype}
    assert network(torch.rand(3, 1, 8, 8).to(dtype)).dtype == dtype
    assert built.dtype == str(dtype).removeprefix("torch.")
    assert built.sublayers[0].transform_flops(WIDTH, 1) == 2 * WIDTH * WIDTH


class Cast(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(width, width).to(torch.bfloat16)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.map(x.to(torch.bfloat16)))


def mixed(width):
    return nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width).to(torch.bfloat16))


@pytest.mark.parametrize(
    ("factory", "says"),
    [
        (Cast, "becomes bfloat16"),
        (mixed, "several dtypes"),
    ],
)
def test_dtypes_that_cannot_be(factory, says):
    with pytest.raises(BadInput, match=says):
        family(factory)


class Attend(nn.Module):
    def __init__(self, width: int, heads: int = 12) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, need_weights=False)[0]


class Windows(nn.Module):
    """A map over windows of 16 steps."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        batch, steps, width = x.shape
        y = self.map(x.view(batch, steps // 16, 16, width).mT).mT
        return y.reshape(x.shape)


@pytest.mark.parametrize(
    ("factory", "kind", "width", "nearest"),
    [
        (Attend, "sequence", 64, 60),
        (Windows, "sequence", 7, 7),
    ],
)
def test_conditions_on_sizes_are_found(factory, kind, width, nearest):
    built = family(factory)
    assert (built.kind, built.nearest_width(width)) == (kind, nearest)
    built.check_width(nearest)


def test_a_width_that_does_not_fit_has_the_reason_and_the_next_one():
    with pytest.raises(BadInput, match="fits is 60"):
        family(Attend).check_width(64)


def test_the_shape_of_the_data_is_tried():
    with pytest.raises(Incompatible, match="it takes 16, 32"):
        build("plain", family(Windows), width=WIDTH, depth=1, dataset="digits")


class Counted(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.map = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        with self.lock:
            return torch.relu(self.map(x))


def lazy(width):
    return nn.Sequential(nn.LazyLinear(2 * width), nn.GELU(), nn.LazyLinear(width))


def normed(width):
    return nn.Sequential(nn.utils.weight_norm(nn.Linear(width, width)), nn.Tanh())


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize("factory", [Counted, lazy, normed])
def test_what_cannot_be_copied_is_built_again(factory):
    part = family(factory).sublayers[0]
    module = part.module(WIDTH)
    again = rebuilt(lambda: part.module(WIDTH), module)
    x = torch.randn(3, WIDTH)
    assert torch.equal(module(x), again(x))
    assert part.transform_parameters(WIDTH) == count_parameters(module)
    one, other = (build("residual", family(factory), width=WIDTH, depth=2, seed=3) for _ in range(2))
    assert torch.equal(one(x), other(x))


class Scaled(nn.Module):
    """A map of another module, times a scale of its own."""

    def __init__(self, shared: nn.Linear) -> None:
        super().__init__()
        self.shared = shared
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.shared(x)


def shares(width):
    shared = nn.Linear(width, width)
    return [nn.Sequential(shared, nn.Tanh()), Scaled(shared)]


@pytest.mark.parametrize("block", ["residual", "pre-norm", "hc-dynamic"])
def test_what_the_parts_of_a_layer_share_stays_shared(block):
    built = family(shares)
    network = build(block, built, width=WIDTH, depth=2)
    maps = [part for part in network.modules() if isinstance(part, nn.Linear) and part.in_features == WIDTH]
    in_layers = {id(one) for layer in own_layers(network) for one in layer.modules() if isinstance(one, nn.Linear)}
    assert len(in_layers & set(map(id, maps))) == 2  # one a layer
    assert count_parameters(network) == blocks.get(block).stack_parameters(built, WIDTH, 2)


def regular(width):
    return nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.1, batch_first=True)


class StochasticDepth(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.bernoulli(torch.full((len(x), 1), 1 - self.p))


def shallow(width):
    return nn.Sequential(nn.Linear(width, width), StochasticDepth(0.5))


@pytest.mark.parametrize("factory", [regular, shallow])
def test_dropout_is_set_to_0_and_that_is_said(factory):
    built = family(factory)
    assert built.options["dropout"] == 0
    network, x = build("residual", built, width=WIDTH, depth=2).train(), built.example(2, WIDTH)
    assert torch.equal(network(x), network(x))


class Masked(nn.Linear):
    def forward(self, x: Tensor, mask: Tensor, *, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        return super().forward(x) * mask * scale, mask


def make_inputs(width, batch):
    return {"mask": torch.arange(width * batch).view(batch, width) % 2, "scale": 2.0}


def test_further_inputs_come_from_make_inputs_and_the_first_output_counts():
    built = family(lambda width: Masked(width, width))
    network, x = build("plain", built, width=WIDTH, depth=1), torch.randn(3, WIDTH)
    (layer,) = own_layers(network)
    assert torch.equal(network(x), layer(x, **make_inputs(WIDTH, 3))[0])
    assert len(built.remarks) == 2

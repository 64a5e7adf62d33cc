"""Connections that carry more than the stream fit the contract as it stands: several streams, and a history.

Two throw-away blocks, each from its paper's formulas, meet every check of the contract in four families, and equal
``pre-norm`` at their start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from highway_bench.block_check import CHECKS, Subject
from highway_bench.blocks import Block, blocks
from highway_bench.families import Site, make_family
from highway_bench.network import build

FAMILIES = ["dense", "conv", "bilstm", "attention", "transformer"]
STREAMS = 4


class Copies(nn.Module):
    """x → n equal streams, on a new first axis."""

    def forward(self, x: Tensor) -> Tensor:
        return x.expand(STREAMS, *x.shape)


class SumThenNorm(nn.Module):
    """n streams → the norm of their sum."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, streams: Tensor) -> Tensor:
        y: Tensor = self.norm(streams.sum(0))
        return y


class HyperConnections(Block):
    """h = A_mᵀ X; X′ = A_rᵀ X + Bᵀ F(norm(h)), static (arXiv:2409.19606)."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        index = site.layer * site.sublayers + site.sublayer - 1
        self.read = nn.Parameter(torch.eye(STREAMS)[index % STREAMS].clone())
        self.mix = nn.Parameter(torch.eye(STREAMS))
        self.write = nn.Parameter(torch.ones(STREAMS))
        self.norm = site.family.norm(site.width)
        self.transform = site.family.transform(site)

    def forward(self, streams: Tensor) -> Tensor:
        branch = self.transform(self.norm(torch.einsum("s,s...->...", self.read, streams)))
        return torch.einsum("st,s...->t...", self.mix, streams) + torch.einsum("s,...->s...", self.write, branch)

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Copies()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return SumThenNorm(site.family.norm(site.width))


History = tuple[Tensor, tuple[Tensor, ...]]  # the stream Y, and every X so far


class Begin(nn.Module):
    def forward(self, x: Tensor) -> History:
        return x, (x,)


class NormOfStream(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, state: History) -> Tensor:
        y: Tensor = self.norm(state[0])
        return y


class DepthAverage(Block):
    """X_l = Y_(l−1) + F(norm(Y_(l−1))); Y_l = Σ_(j ≤ l) a_j X_j (arXiv:2402.02622)."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        place = site.layer * site.sublayers + site.sublayer
        self.weights = nn.Parameter(torch.cat([torch.zeros(place), torch.ones(1)]))
        self.norm = site.family.norm(site.width)
        self.transform = site.family.transform(site)

    def forward(self, state: History) -> History:
        stream, history = state
        history = (*history, stream + self.transform(self.norm(stream)))
        return torch.einsum("j,j...->...", self.weights, torch.stack(history)), history

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Begin()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return NormOfStream(site.family.norm(site.width))


CARRIERS = {
    "streams": (HyperConnections, lambda family, width, joins: joins * (STREAMS**2 + 2 * STREAMS)),
    "history": (DepthAverage, lambda family, width, joins: joins * (joins + 3) // 2),
}


@pytest.fixture(params=CARRIERS)
def carrier(request: pytest.FixtureRequest, registered: Callable[..., str]) -> str:
    cls, extra = CARRIERS[request.param]
    return registered(f"throw-away-{request.param}", cls, norms=1, leave_norms=1, extra_parameters=extra)


class CarriedStreams(HyperConnections):
    """X′ = carry(X) + 1·F(norm(x₁)), whose streams go through a change of dimension."""

    def __init__(self, site: Site) -> None:
        Block.__init__(self)
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)

    def forward(self, streams: Tensor) -> Tensor:
        carried = torch.stack([self.carry(stream) for stream in streams])
        return carried + self.transform(self.norm(streams[0]))

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return SumThenNorm(site.family.norm(site.width) if site.last else nn.Identity())


@pytest.mark.parametrize(("change", "states"), [("pad", 1), ("plain", 2)])
def test_a_state_lasts_until_a_plain_layer_or_the_networks_end(
    registered: Callable[..., str], change: Any, states: int
) -> None:
    name = registered("throw-away-carried", CarriedStreams, norms=1, leave_norms=1)
    net = build(name, "conv", stages=[(2, 4), (2, 6, 2)], change=change)
    assert sum(isinstance(part, Copies) for part in net.modules()) == states
    ends = [part for part in net.modules() if isinstance(part, SumThenNorm)]
    assert [isinstance(end.norm, nn.Identity) for end in ends] == [True, False][-states:]
    assert net(torch.randn(3, 4, 8, 8)).shape == (3, 6, 4, 4)


@pytest.mark.parametrize("family", FAMILIES)
def test_keeps_the_contract(carrier: str, family: str) -> None:
    subject = Subject(blocks.get(carrier), make_family(family))
    for check in CHECKS:
        check(subject)


@pytest.mark.parametrize("family", FAMILIES)
def test_starts_as_pre_norm(carrier: str, family: str) -> None:
    """Both ask for the same parts in the same order, so one seed gives them the same weights."""
    x = make_family(family).example(3, 8, seq_len=5).double()
    here, reference = (build(name, family, width=8, depth=6, seed=5).double() for name in (carrier, "pre-norm"))
    torch.testing.assert_close(here(x), reference(x), rtol=1e-4, atol=1e-5)  # the last norm's eps sees n-fold streams


def test_a_network_trains_with_it(carrier: str) -> None:
    network = build(carrier, "dense", width=8, depth=3, dataset="digits", seed=6)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    images, classes = torch.rand(64, 1, 8, 8), torch.arange(64) % 10
    losses = []
    for _ in range(10):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(network(images), classes)
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]


def test_a_state_begins_anew_in_every_call(carrier: str) -> None:
    network = build(carrier, "dense", width=8, depth=3, seed=7)
    x = torch.randn(2, 8)
    assert torch.equal(network(x), network(x))

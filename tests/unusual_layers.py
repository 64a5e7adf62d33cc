"""Layers with parameters that are complex, integers, frozen, computed, or in some steps without a gradient."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

NAMES = ("complex_filter", "experts", "choosy", "low_rank", "spectral", "orthogonal", "normed", "normed_classic")
"""The layers of this module, all of which train."""


class ComplexFilter(nn.Module):
    """A complex factor for each frequency of the features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.factors = nn.Parameter(torch.randn(width // 2 + 1, dtype=torch.cfloat))
        self.map = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        filtered = torch.fft.irfft(torch.fft.rfft(x) * self.factors, n=x.shape[-1])
        y = self.map(filtered)
        return y.tanh()


class Experts(nn.Module):
    """Each item goes to one of five experts; some get none."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.route = nn.Linear(width, 5)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(5))

    def forward(self, x: Tensor) -> Tensor:
        score, chosen = self.route(x).softmax(-1).max(-1)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            (rows,) = torch.where(chosen == number)
            if len(rows):
                y = y.index_add(0, rows, expert(x[rows]) * score[rows, None])
        return y


class Turns:
    """Gives the parts of a choosy layer to call: both, one, the other, none, and so on."""

    def __init__(self, taken: int) -> None:
        self.taken = taken

    def __next__(self) -> tuple[int, ...]:
        self.taken += 1
        return ((0, 1), (0,), (1,), ())[(self.taken - 1) % 4]


class Choosy(nn.Module):
    """Calls other parts of itself in each call."""

    def __init__(self, width: int, taken: int = 0) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.turns = Turns(taken)  # no number of the module, which a stack would see change

    def forward(self, x: Tensor) -> Tensor:
        for number in next(self.turns):
            x = x + self.parts[number](x)
        return x.tanh()


class LowRank(nn.Module):
    """A frozen map with a trained part of rank one, and frozen integers that order the features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down, self.up = nn.Linear(width, 1, bias=False), nn.Linear(1, width, bias=False)
        self.order = nn.Parameter(torch.arange(width).flip(0), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.base(x[..., self.order]) + self.up(self.down(x))
        return y.relu()


complex_filter, experts, choosy, low_rank = ComplexFilter, Experts, Choosy, LowRank


class Reading(nn.Linear):
    """Reads a number of its input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if float(x.detach().sum()) > -1e30 else x


def reading(width):
    """What vmap refuses."""
    return Reading(width, width)


def late(width):
    """A choosy layer of which one part has its first gradient later than the other."""
    return Choosy(width, taken=1)


def spectral(width):
    """A weight over its largest singular value, which every training step estimates further."""
    return nn.Sequential(parametrizations.spectral_norm(nn.Linear(width, width)), nn.ReLU())


def orthogonal(width):
    """An orthogonal weight."""
    return nn.Sequential(parametrizations.orthogonal(nn.Linear(width, width)), nn.ReLU())


def normed(width):
    """A weight with lengths and directions of its own."""
    return nn.Sequential(parametrizations.weight_norm(nn.Linear(width, width)), nn.ReLU())


def normed_classic(width):
    """The same as torch had it before parametrisations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return nn.Sequential(nn.utils.weight_norm(nn.Linear(width, width)), nn.ReLU())

"""Modules that turn a stream into a state and back, for the blocks that carry more than the stream."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.families import Site


def is_number(value: object) -> bool:
    """Whether an option's value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def final_norm(site: Site) -> nn.Module:
    """The norm after the network's last layer, which belongs to connections that leave the stream itself without one;
    the identity between stages."""
    return site.family.norm(site.width) if site.last else nn.Identity()


class Twice(nn.Module):
    """x → (x, x): the stream, and a second part of the state."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


class FirstThen(nn.Module):
    """A state (x, …) → module(x)."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, state: tuple[Tensor, ...]) -> Any:
        return self.module(state[0])


class Copies(nn.Module):
    """x → n equal streams (n, …, features, …), on a new first axis."""

    def __init__(self, streams: int) -> None:
        super().__init__()
        self.streams = streams

    def forward(self, x: Tensor) -> Tensor:
        return x.expand(self.streams, *x.shape)


class SumThen(nn.Module):
    """Streams (n, …) → module(their sum)."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, streams: Tensor) -> Any:
        return self.module(streams.sum(0))


def carried(carry: nn.Module, streams: Tensor) -> Tensor:
    """Streams (n, batch, …), each carried by ``carry``."""
    if isinstance(carry, nn.Identity):
        return streams
    together: Tensor = carry(streams.flatten(0, 1))
    y: Tensor = together.unflatten(0, streams.shape[:2])
    return y


def strided(weights: Tensor, stride: int) -> Tensor:
    """Weights by position, at the positions that a carried path with this ``stride`` has left."""
    return weights if stride == 1 else weights[..., ::stride, ::stride]


def weighted_sum(weights: Tensor, parts: tuple[Tensor, ...]) -> Tensor:
    """Σ w_j x_j, without a copy of the parts: backward needs only the parts themselves."""
    total: Tensor = weights[0] * parts[0]
    for weight, part in zip(weights[1:], parts[1:], strict=True):
        total = torch.addcmul(total, weight, part)
    return total

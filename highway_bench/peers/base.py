"""Peer: another implementation of a network that this package builds, and the registry of peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.network import Stack
from highway_bench.registry import Registry

Builder = Callable[[Stack], nn.Module]
"""From our network to another implementation of it, with copies of its weights, on the CPU."""


@dataclass(frozen=True)
class Peer:
    """A registry entry: the other implementation of stacks of ``block`` in ``family``.

    ``package`` is the distribution that computes it. ``compiles`` is whether ``torch.compile`` makes a graph of it.
    """

    name: str
    summary: str
    source: str
    block: str
    family: str
    build: Builder
    package: str = "torch"
    compiles: bool = True

    @property
    def version(self) -> str | None:
        """The installed version of ``package``; ``None`` where it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None


peers: Registry[Peer] = Registry("peer", group="highway_bench.peers")


def register_peer(
    name: str,
    *,
    block: str,
    family: str,
    summary: str,
    source: str,
    package: str = "torch",
    compiles: bool = True,
) -> Callable[[Builder], Builder]:
    """Decorator of a function that builds a peer from our network: register it."""

    def register(build: Builder) -> Builder:
        peer = Peer(name, summary, source, block, family, build, package, compiles)
        peers.register(name, peer, module=build.__module__)
        return build

    return register


def joins_of(ours: Stack) -> list[Any]:
    """The connections of our network. Their parts depend on its block and family, so they have no common type."""
    return list(ours.joins)


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """An ``nn.Linear`` with copies of these weights."""
    outputs, inputs = weight.shape
    module = nn.Linear(inputs, outputs)
    copy_into(module.weight, weight)
    copy_into(module.bias, bias)
    return module


@torch.no_grad()
def copy_into(parameter: Tensor, values: Tensor) -> None:
    """Copy ``values`` into a parameter of the same shape."""
    if parameter.shape != values.shape:
        raise ValueError(f"weights of shape {tuple(values.shape)} do not fit {tuple(parameter.shape)}")
    parameter.copy_(values)

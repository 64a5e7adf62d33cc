"""Peer: another implementation of a network that this package builds, and the registry of peers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from torch import nn

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


def register_peer(name: str, **about: Any) -> Callable[[Builder], Builder]:
    """Decorator of a function that builds a peer from our network: register it. ``about`` are other fields of
    ``Peer``."""

    def register(build: Builder) -> Builder:
        peers.register(name, Peer(name, build=build, **about), module=build.__module__)
        return build

    return register

"""Architectures: whole published networks, with any block and family in their layers."""

from highway_bench.architectures.base import Architecture, architectures, register_architecture

__all__ = ["Architecture", "architectures", "register_architecture"]

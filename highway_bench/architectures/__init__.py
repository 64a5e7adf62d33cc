"""Architectures: whole published networks that any block and family can fill."""

from highway_bench.architectures.base import Architecture, architectures, register_architecture

__all__ = ["Architecture", "architectures", "register_architecture"]

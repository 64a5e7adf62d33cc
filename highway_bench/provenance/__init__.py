"""Provenance: the machine, the commit and the versions that a measurement belongs to, and file locks. Without torch."""

from __future__ import annotations

from highway_bench.provenance.machine import Identity, identity

__all__ = ["Identity", "identity"]

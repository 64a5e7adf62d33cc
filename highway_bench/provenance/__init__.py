"""Provenance: a measurement's machine, commit and versions; and file locks. Never imports torch."""

from __future__ import annotations

from highway_bench.provenance.machine import Identity, identity

__all__ = ["Identity", "identity"]

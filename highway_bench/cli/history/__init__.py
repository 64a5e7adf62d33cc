"""``highway-bench history``: its commands."""

from __future__ import annotations

from highway_bench.cli.history import compare, gate, run

__all__ = ["compare", "gate", "run"]

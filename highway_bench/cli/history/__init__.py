"""``highway-bench history``: one command a module."""

from __future__ import annotations

from highway_bench.cli.history import compare, gate, importing, init, noise, publish, run

__all__ = ["compare", "gate", "importing", "init", "noise", "publish", "run"]

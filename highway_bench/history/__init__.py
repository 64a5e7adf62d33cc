"""History: how every block's values change over commits and machines, by asv. Never imports torch."""

from __future__ import annotations

from highway_bench.history.paths import Paths

__all__ = ["Paths"]

"""History: every block's values over commits and machines, measured by asv. Never imports torch."""

from __future__ import annotations

from highway_bench.history.paths import Paths

__all__ = ["Paths"]

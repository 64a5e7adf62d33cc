"""History: how every block's values moved over commits and machines. asv's glue; never imports torch."""

from __future__ import annotations

from highway_bench.history.paths import Paths

__all__ = ["Paths"]

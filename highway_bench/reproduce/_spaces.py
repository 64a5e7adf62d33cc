"""Search spaces of reproductions, added to the package's own when a reproduction is imported.

They are no part of ``tuning``: every training runs through that module, and a change to it makes all stored losses
invalid. Trials have their own values in their cells, so only the process that plans a run needs these spaces.
"""

from __future__ import annotations

from typing import cast

from highway_bench.tuning import FIGURE_1, SPACES, Space

FIXED_BIAS = "figure-1-fixed-bias"
"""The space of Figure 1 without a prior of the gate bias: the cell's own bias stays. All else has the same draws."""

cast(dict[str, Space], SPACES)[FIXED_BIAS] = FIGURE_1._replace(gates={})

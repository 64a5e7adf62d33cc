"""How deep a block trains: L_max by the rule and L50 by the fit, from a ladder of depths."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from highway_bench.measure.frontier import l50, l_max
from highway_bench.report.frame import rows_of
from highway_bench.report.tables.trainability import FEW, NO_VERDICT


def frontier(part: pd.DataFrame, block: str) -> dict[str, Any]:
    """The frontier of ``block`` from its rungs in ``part``, rows of the trainability table.

    ``l_max`` with ``l_max_censored`` (``left``: below ``l_max``, the shallowest depth; ``right``: the ladder ended),
    where a run that did not finish counts against it, also at a depth where none did; ``l50``, ``l50_low``,
    ``l50_high`` and ``l50_censored`` from finished runs; ``provisional``; ``limited``, here ``False`` (see
    ``summary``). All NaN where seeds are too few or no run finished.
    """
    rungs = part[(part["block"] == block) & (part["n"] + part["unfinished"] > 0)]
    nothing = dict.fromkeys(("l_max", "l50", "l50_low", "l50_high"), math.nan)
    empty = nothing | {"l_max_censored": "", "l50_censored": "", "provisional": False, "limited": False}
    if not rungs["n"].any() or rungs["verdict"].isin([FEW, NO_VERDICT]).any():
        return empty
    cells = [{name: int(cell[name]) for name in ("depth", "k", "n", "unfinished")} for cell in rows_of(rungs)]
    rule = l_max({cell["depth"]: (cell["k"], cell["n"] + cell["unfinished"]) for cell in cells})
    fit = l50({cell["depth"]: (cell["k"], cell["n"]) for cell in cells if cell["n"]})
    return {
        "l_max": float(rule.shallowest if rule.value is None else rule.value),
        "l_max_censored": rule.censored or "",
        "l50": fit.value,
        "l50_low": fit.low,
        "l50_high": fit.high,
        "l50_censored": fit.censored or "",
        "provisional": rule.provisional,
        "limited": False,
    }

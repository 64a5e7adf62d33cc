"""Execution modes side by side: each block in its fastest mode, and what that is over plain in its fastest one."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd

from highway_bench.cell import MODES
from highway_bench.measure.statistics import ratio_over_processes
from highway_bench.report.descriptions import Descriptions
from highway_bench.report.rows import COMPARISON, groups, rows_of, samples_of

SETTING = tuple(name for name in COMPARISON if name != "mode")
APART = "not timed in turn"
"""Why two cells have no ratio: their samples are of different rounds."""


def best_modes(times: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.best_modes``, from that of ``Results.ratios``."""
    timed = times[times["step_time"].notna()]
    records = []
    for setting, part in groups(timed, SETTING):
        if len(set(part["mode"])) == 1:
            continue
        best = part.sort_values("step_time", kind="stable").drop_duplicates("block")
        plain = next(iter(rows_of(best[best["block"] == about.baseline])), None)
        for cell in rows_of(best):
            own = part[part["block"] == cell["block"]].set_index("mode")["step_time"]
            by_mode = {mode: own.get(mode, math.nan) for mode in MODES}
            fastest = {"block": cell["block"], "best_mode": cell["mode"], "step_time": cell["step_time"]}
            records.append(setting | by_mode | fastest | over(cell, plain))
    columns = [*SETTING, "block", *MODES, "best_mode", "step_time", "ratio", "ratio_low", "ratio_high", "ratio_gap"]
    table = pd.DataFrame(records, columns=columns)
    return about.in_order(table, (*SETTING, "block")) if len(table) else table


def over(cell: dict[str, Any], plain: dict[str, Any] | None) -> dict[str, Any]:
    """The ratio of a cell's step time to that of ``plain``, with its interval over processes, or the reason for none.

    The two cells may have different modes. They were timed in turn if both have the same samples of the yard-stick.
    """
    nothing = {"ratio": math.nan, "ratio_low": math.nan, "ratio_high": math.nan}
    if plain is None:
        return nothing | {"ratio_gap": "plain was not timed"}
    if gap := cell["ratio_gap"] or plain["ratio_gap"]:
        return nothing | {"ratio_gap": gap}
    rounds, others = (json.loads(one["paired"] or "{}") for one in (cell, plain))
    if not rounds or rounds["yardstick"] != others.get("yardstick"):
        return nothing | {"ratio_gap": APART}
    samples = samples_of(cell["samples"]), samples_of(plain["samples"])
    found = ratio_over_processes(*samples, rounds["process"], wall=rounds["wall"])
    return {"ratio": found.value, "ratio_low": found.low, "ratio_high": found.high, "ratio_gap": ""}

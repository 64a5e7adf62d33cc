"""The costs of trained networks: step times and bytes of cells with the same setting and depth, in one phase."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from highway_bench.provenance.former_names import known_under
from highway_bench.report.ratio import NOT_TIMED
from highway_bench.report.rows import CONTEST, rows_of, without_start
from highway_bench.report.tables.trainability import Contests

ALIKE: Final = ("family_label", "machine", "device", "dtype", "match")
"""Columns in which a cost must equal its contest. Width, batch and length may differ, so reports print the former."""

PHASES: Final = ("train-step", "forward-backward", "forward")
"""Phases by their relevance to training, highest first."""

SIZE: Final = ("nominal_width", "batch_size", "seq_len", "threads")
"""Columns that must be equal for a comparison of costs between blocks."""

STEP: Final = ("step_time", "step_low", "step_high", "ratio", "ratio_low", "ratio_high", "ratio_gap")
COST: Final = (*STEP, "timed_width", "timed_batch", "bytes_per_layer", "bytes_ratio", "bytes_width", "bytes_batch")


def common_phase(timed: pd.DataFrame) -> str:
    """The one phase in which a report compares costs: that of most eager cells with a ratio, then with a step time.

    Empty if no step was timed."""
    own = timed[timed["mode"].eq("eager") & timed["step_time"].notna()]
    counts = own.groupby("phase")[["ratio", "step_time"]].count()
    known = [phase for phase in PHASES if phase in counts.index]
    return max(known, key=lambda phase: tuple(counts.loc[phase]), default="")


def cost_table(contests: Contests, timed: pd.DataFrame, memory: pd.DataFrame, phase: str) -> pd.DataFrame:
    """The table of ``Results.costs``: ``timed`` are the ratios, of which only those of ``phase`` count."""
    timed, counted = timed[timed["phase"] == phase], memory[memory["saved_per_layer"].notna()]
    records = [
        {**contest, "depth": depth, "block": block, **cost}
        for contest, part in contests
        for depth in sorted(part["depth"].unique())
        for block, cost in costs_at(contest, depth, list(dict.fromkeys(part["block"])), timed, counted).items()
    ]
    return pd.DataFrame(records, columns=[*CONTEST, "depth", "block", *COST])


def costs_at(
    setting: Mapping[str, Any], depth: float, blocks: list[str], timed: pd.DataFrame, counted: pd.DataFrame
) -> dict[str, dict[str, Any]]:
    """For each of ``blocks`` the columns ``COST`` in a setting at one depth; NaN where a block has no such cell."""
    steps = {cell["block"]: cell for cell in rows_of(at_one_size(timed, setting, depth))[::-1]}
    sizes = {cell["block"]: cell for cell in rows_of(at_one_size(counted, setting, depth))[::-1]}
    costs = {}
    for block in blocks:
        cost: dict[str, Any] = dict.fromkeys(COST, math.nan) | {"ratio_gap": NOT_TIMED}
        if cell := steps.get(block) or steps.get(without_start(block)):
            cost |= {name: cell[name] for name in STEP}
            cost |= {"timed_width": cell["nominal_width"], "timed_batch": cell["batch_size"]}
        if cell := sizes.get(block) or sizes.get(without_start(block)):
            cost |= {"bytes_per_layer": cell["saved_per_layer"], "bytes_ratio": cell["layer_ratio"]}
            cost |= {"bytes_width": cell["nominal_width"], "bytes_batch": cell["batch_size"]}
        costs[block] = cost
    return costs


def at_one_size(table: pd.DataFrame, setting: Mapping[str, Any], depth: float) -> pd.DataFrame:
    """Eager cells of ``table`` with the setting of a contest, at ``depth`` and all of one size.

    This is the size with the most blocks; of several, the nearest by plain's width, then by batch, then the one with
    the fewest threads. Costs at different sizes are not comparable. A contest whose machine is known by a former name
    alone has the costs of the machine with most cells among those that had this name.
    """
    same = table["mode"].eq("eager") & table["depth"].eq(depth)
    for name in ALIKE:
        if name != "machine":
            same &= table[name].eq(setting[name])
    own = table[same & table["machine"].eq(setting["machine"])]
    if own.empty and (several := table[same & table["machine"].isin(known_under(setting["machine"]))]["machine"]).size:
        own = table[same & table["machine"].eq(several.mode().iloc[0])]
    if own.empty:
        return own
    away = {f"_{name}": (own[name] - (setting.get(name) or math.nan)).abs() for name in ("nominal_width", "batch_size")}
    own = own.assign(**away).sort_values([*away, "threads"], kind="stable").drop(columns=list(away))
    sizes = own.groupby(list(SIZE), sort=False, dropna=False)
    number = sizes.ngroup()
    blocks = own["block"].groupby(number, sort=False).nunique()
    best: pd.DataFrame = own[number == blocks.idxmax()]
    return best

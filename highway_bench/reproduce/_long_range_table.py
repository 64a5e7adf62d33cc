"""The table of long ranges: steps to the threshold by length, family and block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from highway_bench.frames.descriptions import UNDESCRIBED
from highway_bench.measure.statistics import log10_interval, wilson
from highway_bench.report import columns as column
from highway_bench.report.format import between, count
from highway_bench.reproduce._tuned import RATE_HINT

Hits = Mapping[int, Mapping[int, float]]
"""Length → seed → step at which the run reached the threshold (its hit), ∞ for a miss."""


def steps_text(steps: Sequence[float]) -> str:
    """Steps to the hit, over seeds: "310–420 steps, 3 of 3 seeds"."""
    reached = sorted(step for step in steps if math.isfinite(step))
    if not reached:
        return f"no hit in {len(steps)} seeds"
    return f"{_range(reached)} steps, {len(reached)} of {len(steps)} seeds"


def _range(values: Sequence[float]) -> str:
    low, high = count(min(values)), count(max(values))
    return low if low == high else f"{low}–{high}"


def table_of(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per length, family and block, from the ``runs`` of all seeds."""
    records = []
    order = {"block": UNDESCRIBED.block_order(runs["block"]).index}
    arm = ["seq_len", "family", "block"]
    ordered = runs.sort_values(
        arm, kind="stable", key=lambda column: column.map(order[column.name]) if column.name in order else column
    )
    for _, part in ordered.groupby(arm, sort=False):
        first, reached = part.iloc[0], int((part["hit"] < math.inf).sum())
        low, high = wilson(reached, len(part))
        loss = log10_interval(part["relative"]) if (part["relative"] > 0).all() else None
        records.append(
            {
                "length": first["seq_len"],
                "family": first["family"],
                "block": first["block"],
                "width": part["width"].max(),
                "params": part["params"].max(),
                "rate": part["rate"].median(),
                "edge": first["edge"],
                "hits": f"{reached} of {len(part)} {between(low, high)}",
                "steps": steps_text(list(part["hit"])),
                "relative": loss.value if loss else math.nan,
                "low": loss.low if loss else math.nan,
                "high": loss.high if loss else math.nan,
                "step_seconds": part["step_seconds"].median(),
            }
        )
    return pd.DataFrame(records)


def shown(table: pd.DataFrame, note: str) -> column.Shown:
    """The rows of ``table_of`` as a table of the page."""
    columns = [
        column.whole("length", "T"),
        column.words("family", "family"),
        column.words("block", "block"),
        column.whole("width", "width"),
        column.whole("params", "parameters"),
        column.number("rate", "rate", hint=RATE_HINT),
        column.words("edge", "edge of the rates"),
        column.words("hits", "seeds that hit", "of those that ended, with Wilson's 95 % interval"),
        column.words("steps", "steps to the hit", "range over seeds"),
        column.spread("relative", "final loss / chance", "low", "high", "1", "geometric mean, 95 % t interval"),
        column.number("step_seconds", "step", "s"),
    ]
    return column.shown("long-range", "Steps to learn by sequence length", table, columns, note=note)

"""The results as a table: our time and saved bytes over those of each peer."""

from __future__ import annotations

import pandas as pd

from highway_bench.frames.cells import by_cell, no_ratio_because
from highway_bench.frames.rows import of_task, recipe_of
from highway_bench.report import columns as column
from highway_bench.report.columns import Record, TextTable, is_decided, quoted
from highway_bench.report.format import NONE

METRICS = ("peer_ratio", "step_time", "peer_time", "gpu_ratio", "saved_activations", "peer_saved", "difference")
SPREAD = {"peer_ratio": "ratio", "gpu_ratio": "gpu_ratio"}
FINE = "{:.4f}".format  # many ratios are within 0.5 % of 1, where three digits would hide which side they are on


def peer_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per cell. ``ratio`` is our time over the peer's, with the interval ``ratio_low`` to ``ratio_high``.

    ``saved_ratio`` is our saved bytes over the peer's, and ``verdict`` is ``faster``, ``slower``, ``undecided`` or
    ``no difference detected``.
    """
    table = by_cell(of_task(rows, "peers"), METRICS, spread=SPREAD).rename(columns={"peer_ratio": "ratio"})
    recipes = table["recipe"].map(recipe_of)
    for name in ("peer", "version"):
        table[name] = [recipe.get(name) for recipe in recipes]
    table["saved_ratio"] = table["saved_activations"] / table["peer_saved"]
    timed = zip(table["status"], table["ratio"], table["ratio_low"], table["message"], strict=True)
    table["ratio_gap"] = [no_ratio_because(*cell) for cell in timed]
    bounds = zip(table["ratio"], table["ratio_low"], table["ratio_high"], strict=True)
    table["verdict"] = [verdict(*cell) for cell in bounds]
    return table.sort_values(["block", "family", "peer", "phase", "mode", "width"], ignore_index=True)


def verdict(value: float, low: float, high: float) -> str:
    """What a ratio of times with its 95 % interval says of our step."""
    if not is_decided(value, low, high):
        return "undecided"
    return "faster" if high < 1 else "slower" if low > 1 else "no difference detected"


def peer_tables(table: pd.DataFrame) -> list[TextTable]:
    """One printed table for each connection and family."""
    columns = [
        column.computed("peer", named, is_number=False),
        column.words("phase", "step"),
        column.words("mode", "mode"),
        column.whole("width", "width"),
        column.whole("depth", "layers"),
        column.whole("batch_size", "batch"),
        column.number("step_time", "ours", "s"),
        column.number("peer_time", "theirs", "s"),
        column.ratio("ratio", "ours ÷ theirs [95 %]", text=FINE),
        column.computed("GPU time, ours ÷ theirs [95 %]", gpu_ratio),
        column.words("verdict", "ours is"),
        column.number("saved_activations", "saved", "B"),
        column.number("saved_ratio", "saved, ours ÷ theirs", hint="bytes for the backward pass: counted exactly"),
        column.words("message", "remark"),
    ]
    return [
        column.shown(f"peers-{block}-{family}", f"{block}, {family}", part, columns)
        for (block, family), part in table.groupby(["block", "family_label"])
    ]


def gpu_ratio(row: Record) -> str:
    """The ratio of GPU times in the notation of measured ratios; a dash for a cell of a CPU."""
    if column.missing(row["gpu_ratio"]):
        return NONE
    return quoted(row["gpu_ratio"], row["gpu_ratio_low"], row["gpu_ratio_high"], row["ratio_gap"], text=FINE)


def named(row: Record) -> str:
    """A peer with the version of its package."""
    return f"{row['peer']} {row['version'] or ''}".strip()

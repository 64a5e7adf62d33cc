"""What the cost task counted: parameters, and the multiply-adds of one item forward."""

from __future__ import annotations

from typing import Final

import pandas as pd

from highway_bench.report.descriptions import Descriptions
from highway_bench.report.rows import groups, of_task
from highway_bench.report.tables.cells import by_cell

METRICS: Final = ("parameters", "multiply_adds")
CONTEXT: Final = ("family_label", "dataset", "depth", "nominal_width", "match", "seq_len", "recipe")


def counts_table(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.counts``. Counts are the same on every machine, and shown once."""
    table = by_cell(of_task(rows, "cost"), METRICS)
    table = table.drop_duplicates([*CONTEXT, "block", *METRICS, "status"]).assign(adds_ratio=float("nan"))
    for _, part in groups(table, CONTEXT):
        plain = part.loc[part["block"] == about.yardstick, "multiply_adds"].dropna()
        if len(plain) and plain.iloc[-1] > 0:
            table.loc[part.index, "adds_ratio"] = part["multiply_adds"] / plain.iloc[-1]
    return about.in_order(table, (*CONTEXT, "block"))

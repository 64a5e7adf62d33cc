"""The counts of the cost task: parameters, and multiply-adds of the forward pass of one item."""

from __future__ import annotations

from typing import Final

import pandas as pd

from highway_bench.frames.cells import by_cell, over_baseline
from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import of_task

METRICS: Final = ("parameters", "multiply_adds")
CONTEXT: Final = ("family_label", "dataset", "depth", "nominal_width", "match", "seq_len", "recipe")


def counts_table(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.counts``. Counts do not depend on the machine, so each is listed once."""
    table = by_cell(of_task(rows, "cost"), METRICS)
    table = table.drop_duplicates([*CONTEXT, "block", *METRICS, "status"])
    table["adds_ratio"] = over_baseline(table, "multiply_adds", CONTEXT, about.baseline)
    return about.in_order(table, (*CONTEXT, "block"))

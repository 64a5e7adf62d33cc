"""Bytes a network keeps, by what holds them."""

from __future__ import annotations

import pandas as pd

from highway_bench.report.descriptions import Descriptions
from highway_bench.report.rows import groups, of_task
from highway_bench.report.tables.cells import by_cell

METRICS = (
    "parameters",
    "gradients",
    "optimiser_state",
    "saved_activations",
    "saved_per_layer",
    "peak",
    "budget_mismatch",
)
CONTEXT = (
    "machine",
    "device",
    "dtype",
    "mode",
    "phase",
    "match",
    "family_label",
    "depth",
    "nominal_width",
    "batch_size",
    "seq_len",
    "dataset",
)


def memory_table(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.memory``."""
    table = by_cell(of_task(rows, "memory"), METRICS)
    table["layer_ratio"] = float("nan")
    for _, part in groups(table, CONTEXT):
        plain = part.loc[part["block"] == about.yardstick, "saved_per_layer"].dropna()
        if len(plain) and plain.iloc[-1] > 0:
            table.loc[part.index, "layer_ratio"] = part["saved_per_layer"] / plain.iloc[-1]
    return about.in_order(table, (*CONTEXT, "block"))

"""Bytes a network keeps, by what holds them."""

from __future__ import annotations

import pandas as pd

from highway_bench.report.rows import YARDSTICK, groups, in_order, of_task
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


def memory_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a cell whose memory was counted, plain first within each comparison; bytes.

    Columns: ``CONTEXT``, ``block``, ``width``, ``params``, ``METRICS``, ``layer_ratio`` (bytes a layer over plain's),
    ``status``, ``message``.
    """
    table = by_cell(of_task(rows, "memory"), METRICS)
    table["layer_ratio"] = float("nan")
    for _, part in groups(table, CONTEXT):
        plain = part.loc[part["block"] == YARDSTICK, "saved_per_layer"].dropna()
        if len(plain) and plain.iloc[-1] > 0:
            table.loc[part.index, "layer_ratio"] = part["saved_per_layer"] / plain.iloc[-1]
    return in_order(table, (*CONTEXT, "block"))

"""The memory of a network: bytes of weights, gradients, optimiser state and saved activations."""

from __future__ import annotations

import pandas as pd

from highway_bench.frames.cells import by_cell, over_baseline
from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import COMPARISON, of_task

BYTES = ("parameter_bytes", "gradients", "optimiser_state", "saved_activations", "saved_per_layer", "peak")
METRICS = (*BYTES, "budget_mismatch")
CONTEXT = tuple(name for name in COMPARISON if name != "threads")  # bytes do not depend on threads


def memory_table(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.memory``."""
    table = by_cell(of_task(rows, "memory"), METRICS)
    table["layer_ratio"] = over_baseline(table, "saved_per_layer", CONTEXT, about.baseline)
    return about.in_order(table, (*CONTEXT, "block"))

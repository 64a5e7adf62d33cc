"""What connections cost: step times and their ratios to plain's, bytes of memory, parameters and multiply-adds."""

from __future__ import annotations

import math
from typing import Final

import pandas as pd

from highway_bench.frames.cells import by_cell, over_baseline
from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import COMPARISON, of_task
from highway_bench.measure.clock import ALL_CAPPED, ALL_DISTURBED
from highway_bench.results.schema import OUTCOMES

ONE_PROCESS = "one process"
OLDER = "no ratio stored"
"""Why a cell has no ratio with an interval."""
STEP_TIMES = (
    "step_time",
    "plain_ratio",
    "yardstick_ratio",
    "step_time_p99",
    "waited",
    "disturbed",
    "gpu_time",
    "gpu_ratio",
    "clock_rate",
    "capped",
    "throughput",
    "flop_rate",
    "roofline_share",
    "slowdown",
    "first_step",
    "compile_time",
    "graph_breaks",
    "budget_mismatch",
)
SPREAD = {
    "step_time": "step",
    "plain_ratio": "ratio",
    "yardstick_ratio": "yardstick_ratio",
    "gpu_time": "gpu_time",
    "gpu_ratio": "gpu_ratio",
    "clock_rate": "clock_rate",
    "roofline_share": "roofline_share",
    "slowdown": "slowdown",
}
BYTES = ("parameter_bytes", "gradients", "optimiser_state", "saved_activations", "saved_per_layer", "peak")
MEMORY = (*BYTES, "budget_mismatch")
ONE_MEMORY = tuple(name for name in COMPARISON if name != "threads")  # bytes do not depend on threads
COUNTS: Final = ("parameters", "multiply_adds")
COUNTED: Final = ("family_label", "dataset", "depth", "nominal_width", "match", "seq_len", "recipe")


def step_times(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.step_times``."""
    table = by_cell(of_task(rows, "throughput"), STEP_TIMES, spread=SPREAD).rename(columns={"plain_ratio": "ratio"})
    if table.empty:
        return table.assign(ratio_gap=[])
    table["ratio_gap"] = [
        gap(*cell) for cell in zip(table["status"], table["ratio"], table["ratio_low"], table["message"], strict=True)
    ]
    for name in ("ratio", "yardstick_ratio", "gpu_ratio"):  # a ratio without an interval is none
        table[name] = table[name].where(table[f"{name}_low"].notna())
    return about.in_order(table, (*COMPARISON, "block"))


def gap(status: str, ratio: float, low: float, message: str) -> str:
    """Why a cell has no ratio with an interval; empty where it has one."""
    if not math.isnan(low):
        return ""
    if status not in OUTCOMES:
        return status
    for reason in (ALL_DISTURBED, ALL_CAPPED):
        if reason in message:
            return reason
    return OLDER if math.isnan(ratio) else ONE_PROCESS


def quoted_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.ratios``, from that of ``Results.step_times``."""
    ranks = table.assign(_known=table["ratio"].notna(), _timed=table["step_time"].notna())
    ranks = ranks.sort_values(["_known", "_timed", "n", "time_utc"], kind="stable", na_position="first")
    best = ranks.drop_duplicates([*COMPARISON, "block"], keep="last").index
    return table.loc[best.sort_values()].reset_index(drop=True)


def memory_table(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.memory``."""
    table = by_cell(of_task(rows, "memory"), MEMORY)
    table["layer_ratio"] = over_baseline(table, "saved_per_layer", ONE_MEMORY, about.baseline)
    return about.in_order(table, (*ONE_MEMORY, "block"))


def counts_table(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.counts``. Counts do not depend on the machine, so each is listed once."""
    table = by_cell(of_task(rows, "cost"), COUNTS)
    table = table.drop_duplicates([*COUNTED, "block", *COUNTS, "status"])
    table["adds_ratio"] = over_baseline(table, "multiply_adds", COUNTED, about.baseline)
    return about.in_order(table, (*COUNTED, "block"))

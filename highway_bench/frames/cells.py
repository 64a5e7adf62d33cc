"""From tidy rows, one metric per row, to one row per cell; what connections cost, and its ratios to the baseline's; and
cells without a result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd

from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import CELL, COMPARISON, groups, of_task
from highway_bench.measure.clock import ALL_CAPPED, ALL_DISTURBED
from highway_bench.results.schema import FAILURES, LATER_ATTEMPT, OUTCOMES, Status, worst

COPIED = ("run_id", "commit", "time_utc", "torch", "gpu")
NO_SPREAD: Final[Mapping[str, str]] = {}
FAILURE = ["task", "family_label", "block", "depth", "phase", "dataset", "status", "message"]
HAS_RESULT = "after the reported result"
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


def by_cell(
    frame: pd.DataFrame, metrics: Sequence[str], *, spread: Mapping[str, str] = NO_SPREAD, further: Sequence[str] = ()
) -> pd.DataFrame:
    """One row per cell of ``frame``, with one column per metric, NaN if it was not measured: ``metrics``, present in
    ``frame`` or not, then its other scalars.

    ``block`` and ``family_label`` are names with their options. ``status`` is the worst status of the cell's rows, by
    the store's rule; ``message`` joins the remarks of these rows, each once. ``spread`` maps metrics to the stem of the
    columns ``…_low`` and ``…_high`` for their percentiles; the first of these metrics also gives ``samples``,
    ``paired`` and ``n``. ``further`` columns of ``frame`` are copied.
    """
    scalars = frame[frame["axis"].fillna("") == ""]
    trial = scalars["digest"].where(scalars["trial"].notna())  # the recipes of trials at all rates are equal
    cell = scalars.assign(trial_digest=trial).groupby([*CELL, "trial_digest"], dropna=False, sort=False).ngroup()
    scalars = scalars.assign(cell=cell)
    copied = [*CELL, "label", "family_label", "machine_label", *COPIED, *further]
    table = scalars.drop_duplicates("cell").set_index("cell")[copied]
    rows_of_cells = scalars.groupby("cell")
    table["params"] = rows_of_cells["params"].max()
    table["status"] = [str(worst(statuses.unique())) for _, statuses in rows_of_cells["status"]]
    remarks = scalars[scalars["message"].fillna("") != ""].groupby("cell")["message"]
    joined = {number: "; ".join(dict.fromkeys("; ".join(texts).split("; "))) for number, texts in remarks}
    table["message"] = pd.Series([joined.get(number, "") for number in table.index], table.index, dtype=str)
    others = [name for name in scalars["metric"].dropna().unique() if name not in ("", *table)]
    newest = scalars.drop_duplicates(["cell", "metric"], keep="last").set_index("cell")
    values = newest.pivot_table(index="cell", columns="metric", values="value", aggfunc="last")
    table = table.join(values.reindex(columns=list(dict.fromkeys([*metrics, *others]))))
    for metric, name in spread.items():
        table = table.join(newest.loc[newest["metric"] == metric, ["low", "high"]].add_prefix(f"{name}_"))
    for metric in list(spread)[:1]:
        table = table.join(newest.loc[newest["metric"] == metric, ["samples", "paired", "n"]])
    return table.reset_index(drop=True).infer_objects().drop(columns="block").rename(columns={"label": "block"})


def over_baseline(table: pd.DataFrame, column: str, alike: Sequence[str], baseline: str) -> pd.Series:
    """``column`` of each row divided by that of the block ``baseline`` with equal columns ``alike``.

    NaN if the baseline has no such row or none above 0. If it has several, the last one counts.
    """
    ratios = pd.Series(math.nan, index=table.index)
    for _, part in groups(table, alike):
        reference = part.loc[part["block"] == baseline, column].dropna()
        if len(reference) and reference.iloc[-1] > 0:
            ratios.loc[part.index] = part[column] / reference.iloc[-1]
    return ratios


def step_times(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.step_times``."""
    table = by_cell(of_task(rows, "throughput"), STEP_TIMES, spread=SPREAD).rename(columns={"plain_ratio": "ratio"})
    if table.empty:
        return table.assign(ratio_gap=[])
    table["ratio_gap"] = [
        no_ratio_because(*cell)
        for cell in zip(table["status"], table["ratio"], table["ratio_low"], table["message"], strict=True)
    ]
    for name in ("ratio", "yardstick_ratio", "gpu_ratio"):  # a ratio without an interval is none
        table[name] = table[name].where(table[f"{name}_low"].notna())
    return about.in_order(table, (*COMPARISON, "block"))


def no_ratio_because(status: str, ratio: float, low: float, message: str) -> str:
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


def failures_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.failures``."""
    bad = rows[rows["status"].isin([*FAILURES, Status.SKIPPED])]
    later = bad["axis"].eq(LATER_ATTEMPT)
    remarks = bad["message"].fillna("")
    bad = bad.assign(axis=bad["axis"].mask(later, ""), message=remarks.mask(later, remarks + f" ({HAS_RESULT})"))
    table = by_cell(bad, ())
    table["message"] = table["message"].fillna("")
    counted = table.groupby(FAILURE, dropna=False, sort=False).size().reset_index(name="cells")
    order = [*sorted(FAILURES), str(Status.SKIPPED)]
    return counted.sort_values(
        ["status", "task"],
        key=lambda column: column.map(order.index) if column.name == "status" else column,
        kind="stable",
        ignore_index=True,
    )

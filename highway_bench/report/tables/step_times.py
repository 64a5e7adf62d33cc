"""Step times, their ratios to the yard-stick's, and the measured rates of the machine."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from highway_bench.measure.statistics import noise_floor, paired_ratio
from highway_bench.report.descriptions import Descriptions
from highway_bench.report.ratio import NO_PLAIN, NOT_PAIRED, TOO_FEW
from highway_bench.report.rows import COMPARISON, groups, of_task, rows_of, samples_of
from highway_bench.report.tables.cells import by_cell
from highway_bench.results.schema import UNPAIRED

METRICS = (
    "step_time",
    "step_time_p99",
    "throughput",
    "flop_rate",
    "roofline_share",
    "slowdown",
    "first_step",
    "compile_time",
    "graph_breaks",
    "budget_mismatch",
)
SPREAD = {"step_time": "step", "roofline_share": "roofline_share", "slowdown": "slowdown"}
RATES = {"matmul_rate": "FLOP/s", "conv_rate": "FLOP/s", "copy_rate": "B/s"}
"""The measured rates of a device, and their units."""
DEVICE = ("machine", "device", "dtype", "threads")


def step_times(rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.step_times``."""
    table = by_cell(of_task(rows, "throughput"), METRICS, spread=SPREAD)
    if table.empty:
        return table.assign(noise=[], ratio=[], ratio_low=[], ratio_high=[], ratio_gap=[])
    table["noise"] = [_noise(text) for text in table["samples"]]
    ratios = pd.DataFrame(
        [_ratio(timed, reference, about.yardstick) for timed, reference in _compared(table, about.yardstick)],
        columns=["ratio", "ratio_low", "ratio_high", "ratio_gap"],
    )
    table = pd.concat([table.reset_index(drop=True), ratios], axis=1)
    return about.in_order(table, (*COMPARISON, "block"))


def quoted_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.ratios``, from that of ``Results.step_times``."""
    ranks = table.assign(_known=table["ratio"].notna(), _timed=table["step_time"].notna())
    ranks = ranks.sort_values(["_known", "_timed", "n", "time_utc"], kind="stable", na_position="first")
    best = ranks.drop_duplicates([*COMPARISON, "block"], keep="last").index
    return table.loc[best.sort_values()].reset_index(drop=True)


def device_rates(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.device_rates``. A process measures once and stores the result with each of its cells."""
    frame = of_task(rows, "throughput")
    frame = frame[frame["metric"].isin(RATES) & frame["value"].notna()]
    records = []
    for device, part in groups(frame, DEVICE):
        record: dict[str, Any] = {}
        for name in RATES:
            values = part.loc[part["metric"] == name, "value"].drop_duplicates()
            low, high = (values.min(), values.max()) if len(values) > 1 else (math.nan, math.nan)
            record |= {name: values.median(), f"{name}_low": low, f"{name}_high": high}
            record["n"] = max(record.get("n", 0), len(values))
        records.append(device | record)
    columns = [*DEVICE, *(f"{name}{bound}" for name in RATES for bound in ("", "_low", "_high")), "n"]
    return pd.DataFrame(records, columns=columns).sort_values(list(DEVICE), ignore_index=True)


def _compared(table: pd.DataFrame, yardstick: str) -> Iterable[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Every row of ``table`` with the yard-stick's row of its comparison, or ``None``.

    A yard-stick of the same run and recipe, sampled in turn with the cell, takes precedence over another one.
    """
    cells: list[dict[str, Any]] = rows_of(table)
    references: dict[int, dict[str, Any]] = {}
    for columns in (COMPARISON, (*COMPARISON, "run_id", "recipe")):
        for _, part in groups(table, columns):
            reference = part[(part["block"] == yardstick) & part["step_time"].notna()]
            if len(reference):
                references.update(dict.fromkeys(part.index, cells[reference.index[-1]]))
    return [(cell, references.get(index)) for index, cell in enumerate(cells)]


def _finite(samples: list[float]) -> bool:
    return all(map(math.isfinite, samples))


def _noise(text: str | None) -> float:
    samples = samples_of(text)
    return noise_floor(samples) if len(samples) >= 4 and min(samples) > 0 and _finite(samples) else math.nan


def _unpaired(cell: dict[str, Any]) -> str:
    """The recorded reason why a cell was not sampled in turn with its group; empty if it was."""
    parts = str(cell["message"] or "").split("; ")
    return next((part.removeprefix(UNPAIRED) for part in parts if part.startswith(UNPAIRED)), "")


def _ratio(timed: dict[str, Any], reference: dict[str, Any] | None, yardstick: str) -> tuple[float, float, float, str]:
    """The ratio to ``reference`` with its interval, or NaN and the reason."""
    nothing = (math.nan,) * 3
    if pd.isna(timed["step_time"]):
        return *nothing, timed["status"]
    if reference is None:
        return *nothing, NO_PLAIN
    if timed is reference:
        return 1.0, 1.0, 1.0, ""
    own, other = samples_of(timed["samples"]), samples_of(reference["samples"])
    if reason := _unpaired(timed):
        return *nothing, f"{NOT_PAIRED}: {reason}"
    if reason := _unpaired(reference):
        return *nothing, f"{NOT_PAIRED}: {yardstick}: {reason}"
    if (
        timed["run_id"] != reference["run_id"]
        or timed["recipe"] != reference["recipe"]
        or len(own) != len(other)
        or not own
        or not _finite(own + other)
    ):
        return *nothing, NOT_PAIRED
    ratio = paired_ratio(own, other)
    return (*nothing, TOO_FEW) if math.isnan(ratio.low) else (ratio.value, ratio.low, ratio.high, "")

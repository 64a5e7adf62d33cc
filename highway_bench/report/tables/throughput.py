"""Step times, and what a block's step costs beside plain's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pandas as pd

from highway_bench.measure.statistics import IntervalEstimate, noise_floor, paired_ratio
from highway_bench.report.ratio import NO_PLAIN, NOT_PAIRED, TOO_FEW
from highway_bench.report.rows import (
    TOGETHER,
    YARDSTICK,
    groups,
    in_order,
    of_task,
    rows_of,
    samples_of,
)
from highway_bench.report.tables.cells import by_cell

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
RATES = {
    "matmul_rate": ("matrix products", "FLOP/s"),
    "conv_rate": ("convolutions", "FLOP/s"),
    "copy_rate": ("copies", "B/s"),
}
"""What a device was measured to do: each metric with its heading and unit."""
UNPAIRED = "unpaired: "
"""What the remark of a cell begins with that lost its group; the reason follows."""

PLACE = ("machine", "device", "dtype", "threads")
CONTEXT = (
    "machine",
    "device",
    "threads",
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


def throughput_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a timed cell, plain first within each comparison; those that failed have a status and no numbers.

    Columns: ``CONTEXT``, ``block`` (with its options), ``width``, ``params``, ``METRICS`` (step_time is the median of
    ``n`` samples, ``step_low`` and ``step_high`` their p10 and p90, as those of ``roofline_share`` and ``slowdown``;
    these two are empty where the step is faster than the roofline, and ``message`` says so), ``ratio`` of step time to
    plain's with ``ratio_low`` and ``ratio_high``, ``noise`` (least relative difference that the samples could tell, A
    against A), ``status``, ``message``. Times are seconds, rates per second. There is a ratio only where the two were
    sampled in turn and often enough for an interval; otherwise ``ratio_gap`` says why there is none.

    A profile may time a cell twice, under two recipes: both are here. ``to_quote`` leaves the one that is quoted.
    """
    frame = of_task(rows, "throughput")
    table = by_cell(frame, METRICS, spread=SPREAD)
    if table.empty:
        return table.assign(noise=[], ratio=[], ratio_low=[], ratio_high=[], ratio_gap=[])
    table["noise"] = [_noise(text) for text in table["samples"]]
    ratios = pd.DataFrame(
        [_ratio(timed, yardstick) for timed, yardstick in _beside(table)],
        columns=["ratio", "ratio_low", "ratio_high", "ratio_gap"],
    )
    table = pd.concat([table.reset_index(drop=True), ratios], axis=1)
    return in_order(table, (*CONTEXT, "block"))


def to_quote(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` of timed cells with one row a block and setting (``CONTEXT``): that which sentences and figures quote.

    Of several like cells, which differ in their recipe or seed, it is one that has a ratio, or else one that was
    timed; of these the one of most samples, and of equals the last one measured.
    """
    ranks = table.assign(_known=table["ratio"].notna(), _timed=table["step_time"].notna())
    ranks = ranks.sort_values(["_known", "_timed", "n", "time_utc"], kind="stable", na_position="first")
    best = ranks.drop_duplicates([*CONTEXT, "block"], keep="last").index
    return table.loc[best.sort_values()].reset_index(drop=True)


def rates_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What a machine was measured to do: a row a device, precision and number of threads (``PLACE``).

    Columns: each of ``RATES``, the median over ``n``
    measurements, with the least and the largest of several in ``…_low`` and ``…_high``. A process measures once, and
    all of its cells carry what it found.
    """
    frame = of_task(rows, "throughput")
    frame = frame[frame["metric"].isin(RATES) & frame["value"].notna()]
    records = []
    for place, part in groups(frame, PLACE):
        record: dict[str, Any] = {}
        for name in RATES:
            values = part.loc[part["metric"] == name, "value"].drop_duplicates()
            ends = (values.min(), values.max()) if len(values) > 1 else (math.nan, math.nan)
            record |= {name: values.median(), f"{name}_low": ends[0], f"{name}_high": ends[1]}
            record["n"] = max(record.get("n", 0), len(values))
        records.append(place | record)
    columns = [*PLACE, *(f"{name}{end}" for name in RATES for end in ("", "_low", "_high")), "n"]
    return pd.DataFrame(records, columns=columns).sort_values(list(PLACE), ignore_index=True)


def _beside(table: pd.DataFrame) -> Iterable[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Every row of ``table``, with the yardstick's row of its comparison or ``None``."""
    cells: list[dict[str, Any]] = rows_of(table)
    apart = ("run_id", "recipe")  # what may differ where a yardstick was timed, but not in turn with the cell
    loose = [name for name in TOGETHER if name not in apart]
    found: dict[int, dict[str, Any]] = {}
    for columns in (loose, TOGETHER):  # the same group's yardstick wins over another's
        for _, part in groups(table, columns):
            plain = part[(part["block"] == YARDSTICK) & part["step_time"].notna()]
            if len(plain):
                found.update(dict.fromkeys(part.index, cells[plain.index[-1]]))
    return [(cell, found.get(place)) for place, cell in enumerate(cells)]


def _finite(samples: list[float]) -> bool:
    return all(map(math.isfinite, samples))


# Several tables and figures of a report want the same intervals, and each takes a millisecond.
@lru_cache(maxsize=8192)
def _noise(text: str | None) -> float:
    samples = samples_of(text)
    return noise_floor(samples) if len(samples) >= 4 and min(samples) > 0 and _finite(samples) else math.nan


@lru_cache(maxsize=8192)
def _paired(own: str, plain: str) -> IntervalEstimate:
    return paired_ratio(samples_of(own), samples_of(plain))


def _unpaired(cell: dict[str, Any]) -> str:
    """Why a cell was not sampled in turn with the others of its group, as its rows say; empty where it was."""
    parts = str(cell["message"] or "").split("; ")
    return next((part.removeprefix(UNPAIRED) for part in parts if part.startswith(UNPAIRED)), "")


def _ratio(timed: dict[str, Any], yardstick: dict[str, Any] | None) -> tuple[float, float, float, str]:
    """The ratio with its interval, or why there is none."""
    nothing = (math.nan,) * 3
    if pd.isna(timed["step_time"]):
        return *nothing, timed["status"]
    if yardstick is None:
        return *nothing, NO_PLAIN
    if timed is yardstick:
        return 1.0, 1.0, 1.0, ""
    own, plain = samples_of(timed["samples"]), samples_of(yardstick["samples"])
    if reason := _unpaired(timed):
        return *nothing, f"{NOT_PAIRED}: {reason}"
    if reason := _unpaired(yardstick):
        return *nothing, f"{NOT_PAIRED}: {YARDSTICK}: {reason}"
    if (
        timed["run_id"] != yardstick["run_id"]
        or timed["recipe"] != yardstick["recipe"]
        or len(own) != len(plain)
        or not own
        or not _finite(own + plain)
    ):
        return *nothing, NOT_PAIRED
    ratio = _paired(timed["samples"], yardstick["samples"])
    return (*nothing, TOO_FEW) if math.isnan(ratio.low) else (ratio.value, ratio.low, ratio.high, "")

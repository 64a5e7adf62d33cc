"""Tables for print: the depths to which connections train, what was measured by task, and what failed."""

from __future__ import annotations

from typing import Final

import pandas as pd

from highway_bench.frames.results import Results
from highway_bench.frames.rows import options_text, rows_of
from highway_bench.report import columns as column
from highway_bench.report.columns import Column, Record, TextTable, missing
from highway_bench.report.format import NONE, between, three
from highway_bench.report.labels import title_of

MOST: Final = 60
"""The most rows of a table for print; ``highway-bench results export`` has all."""
SETTING: Final = ("family_label", "dataset", "depth", "phase", "mode", "recipe", "machine_label", "label")
"""Columns that are equal for the cells in one row, which differ in their seed and size."""
OF_THE_MACHINE: Final = ("matmul_rate", "conv_rate", "copy_rate")
"""Metrics that do not belong to a connection."""
RATIOS: Final = ("plain_ratio", "yardstick_ratio", "gpu_ratio")
"""Metrics that are nothing without their interval."""
NO_MIDDLE: Final = ("step", "test item")
"""Axes over which a median says nothing: a curve of losses, and classes of single items."""
ENDS: Final = {"": "value", "_low": "low", "_high": "high"}


def depth_table(results: Results) -> TextTable:
    """The depths to which each connection trains, a row per contest and connection."""
    contests, table = [contest for contest, _ in results.contests()], results.frontier()
    table["contest"] = [title_of(row, contests, with_data=True) for row in rows_of(table)]
    columns = [
        column.words("contest", "networks"),
        column.words("block", "connection"),
        column.computed("L50", _l50, "depth at which half of the seeds succeed, 95 % bootstrap interval"),
        column.percent("area", "area", "under the success rate over log depth, as a share of the maximum"),
        column.computed("L_max", _l_max, "largest depth that trains and whose shallower depths all train"),
    ]
    return column.shown("depths", "Depths to which connections train", table, columns, most=2 * MOST)


def task_tables(results: Results, most_metrics: int | None = None) -> list[TextTable]:
    """One table for each task; of several tasks the first metrics each."""
    tasks = results.rows["task"].dropna().drop_duplicates()
    most = most_metrics if len(tasks) > 1 else None
    return [shown for task in tasks if (shown := task_table(results, task, most)).entries]


def task_table(results: Results, task: str, most_metrics: int | None = None) -> TextTable:
    """A row for each setting and connection: the median of each metric over cells, layers or epochs; with an interval,
    the last cell's."""
    frame = results.of_task(task)
    frame = frame[~frame["axis"].isin(NO_MIDDLE) & frame["samples"].isna() | frame["axis"].fillna("").eq("")]
    frame = frame[frame["trial"].isna() & frame["value"].notna() & ~frame["metric"].isin(OF_THE_MACHINE)]
    units = dict(frame.drop_duplicates("metric")[["metric", "unit"]].to_numpy()[:most_metrics])
    bounded = {*frame.loc[frame["low"].notna(), "metric"], *RATIOS}
    frame = frame.assign(cell=frame.groupby(list(SETTING), dropna=False, sort=False).ngroup())
    table = frame.drop_duplicates("cell").set_index("cell")[[*SETTING]]
    table["recipe"] = table["recipe"].map(options_text) if len(set(table["recipe"])) > 1 else ""
    table["n"] = frame.groupby("cell")["digest"].nunique()
    free, last = frame[~frame["metric"].isin(bounded)], frame[frame["low"].notna() | frame["metric"].isin(RATIOS)]
    parts = [free.pivot_table(index="cell", columns="metric", values="value", aggfunc="median")]
    for end, bound in ENDS.items():
        wide = last.pivot_table(index="cell", columns="metric", values=bound, aggfunc="last")
        parts.append(wide.add_suffix(end))
    table = pd.concat([table, *parts], axis="columns")
    bounds = [f"{metric}{end}" for metric in units for end in ENDS]
    table = table.reindex(columns=[*SETTING, "n", *bounds])
    columns = [
        column.words("family_label", "family"),
        column.words("dataset", "data"),
        column.words("machine_label", "machine"),
        column.whole("depth", "depth"),
        column.words("label", "connection"),
        *(column.words(name, name) for name in ("phase", "mode", "recipe")),
        *(metric_column(results, task, metric, unit, metric in bounded) for metric, unit in units.items()),
        column.whole("n", "cells"),
    ]
    order = ("family_label", "dataset", "depth", "recipe", "label")
    return column.shown(task, f"Task {task}", results.about.in_order(table, order), columns, most=MOST)


def metric_column(results: Results, task: str, metric: str, unit: str, bounded: bool = False) -> Column:
    """A column of a metric with the heading, hint and unit that the runs describe, and its interval if it has one."""
    label = results.about.metric(task, metric, unit)
    if label.percent and not bounded:
        return column.percent(metric, label.heading, label.hint)
    if bounded and label.unit == "1":
        return column.ratio(metric, label.heading, label.hint)
    return column.spread(metric, label.heading, f"{metric}_low", f"{metric}_high", label.unit, label.hint)


def failure_table(results: Results) -> TextTable:
    """Cells that failed or were skipped."""
    columns = [
        column.words("task", "task"),
        column.words("family_label", "family"),
        column.whole("depth", "depth"),
        column.words("block", "connection"),
        column.words("phase", "phase"),
        column.words("dataset", "data"),
        column.words("status", "status"),
        column.whole("cells", "cells"),
        column.words("message", "reason"),
    ]
    return column.shown("failures", "Failed and skipped cells", results.failures(), columns, most=MOST)


def _l_max(record: Record) -> str:
    value, censored = record["l_max"], record["l_max_censored"]
    if censored == "left":
        return f"< {record['shallowest']:g}"
    return NONE if missing(value) else f"{'≥ ' if censored == 'right' else ''}{value:g}"


def _l50(record: Record) -> str:
    value, censored = record["l50"], record["l50_censored"]
    if missing(value):
        return NONE
    sign = {"right": "> ", "left": "< "}.get(censored, "")
    interval = between(record["l50_low"], record["l50_high"]) if not censored else ""
    return f"{sign}{three(value)} {interval}".strip()

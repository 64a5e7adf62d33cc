"""From tidy rows, one metric each, to a row a cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from highway_bench.report.frame import CELL, rows_of
from highway_bench.results.schema import RANK, Status

KEPT = ("run_id", "commit", "time_utc", "torch", "gpu")


def by_cell(frame: pd.DataFrame, metrics: Sequence[str], *, spread: str = "") -> pd.DataFrame:
    """A row a cell of ``frame`` with a column a metric (NaN where it was not measured).

    ``block`` and ``family_label`` are names with their options. ``status`` is the one of its rows' that stands for
    the cell, as in the store; ``message`` is the first remark. ``spread`` names the
    metric whose samples, count and percentiles are kept, as ``samples``, ``n``, ``step_low`` and ``step_high``.
    """
    copied = (*CELL, "label", "family_label", "machine_label", *KEPT)
    columns = [*copied, "params", "status", "message", *metrics]
    columns += ["samples", "n", "step_low", "step_high"] if spread else []
    scalars = frame[frame["axis"].fillna("") == ""]
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    # Plain dictionaries: pandas takes milliseconds a group, and a store has thousands of cells.
    for record in rows_of(scalars):
        key = tuple(None if value != value else value for value in (record[name] for name in CELL))
        cells.setdefault(key, []).append(record)
    table = pd.DataFrame([_cell(rows, copied, metrics, spread) for rows in cells.values()], columns=columns)
    return table.drop(columns="block").rename(columns={"label": "block"})


def _cell(rows: list[dict[str, Any]], copied: Sequence[str], metrics: Sequence[str], spread: str) -> dict[str, Any]:
    by_metric = {row["metric"]: row for row in rows}
    cell: dict[str, Any] = {name: rows[0][name] for name in copied}
    cell |= {name: by_metric[name]["value"] if name in by_metric else math.nan for name in metrics}
    sizes = [row["params"] for row in rows if row["params"] == row["params"]]
    cell |= {
        "params": max(sizes, default=math.nan),
        "status": worst(row["status"] for row in rows),
        "message": next((row["message"] for row in rows if row["message"]), None),
    }
    if spread:
        main = by_metric.get(spread, {})
        cell |= {
            "samples": main.get("samples"),
            "n": main.get("n", math.nan),
            "step_low": main.get("low", math.nan),
            "step_high": main.get("high", math.nan),
        }
    return cell


def worst(statuses: Iterable[str]) -> str:
    """The status that a cell is reported with, of those of its rows: the store's rule."""
    return str(min((Status(status) for status in statuses), key=RANK.index))

"""From tidy rows, one metric each, to a row a cell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from highway_bench.report.rows import CELL, rows_of
from highway_bench.results.schema import RANK, Status

COPIED = ("run_id", "commit", "time_utc", "torch", "gpu")


NO_SPREAD: Final[Mapping[str, str]] = {}


def by_cell(frame: pd.DataFrame, metrics: Sequence[str], *, spread: Mapping[str, str] = NO_SPREAD) -> pd.DataFrame:
    """A row a cell of ``frame`` with a column a metric (NaN where it was not measured).

    ``block`` and ``family_label`` are names with their options. ``status`` is the one of its rows' that stands for
    the cell, as in the store; ``message`` has its rows' remarks, each once. ``spread`` has the metrics whose
    percentiles are wanted, with the name that ``…_low`` and ``…_high`` get; the first of them also gives ``samples``
    and ``n``.
    """
    copied = (*CELL, "label", "family_label", "machine_label", *COPIED)
    columns = [*copied, "params", "status", "message", *metrics]
    columns += [f"{name}_{end}" for name in spread.values() for end in ("low", "high")]
    columns += ["samples", "n"] if spread else []
    scalars = frame[frame["axis"].fillna("") == ""]
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    # Plain dictionaries: pandas takes milliseconds a group, and a store has thousands of cells.
    for record in rows_of(scalars):
        key = tuple(None if value != value else value for value in (record[name] for name in CELL))
        cells.setdefault(key, []).append(record)
    table = pd.DataFrame([_cell(rows, copied, metrics, spread) for rows in cells.values()], columns=columns)
    return table.drop(columns="block").rename(columns={"label": "block"})


def _cell(
    rows: list[dict[str, Any]], copied: Sequence[str], metrics: Sequence[str], spread: Mapping[str, str]
) -> dict[str, Any]:
    by_metric = {row["metric"]: row for row in rows}
    cell: dict[str, Any] = {name: rows[0][name] for name in copied}
    cell |= {name: by_metric[name]["value"] if name in by_metric else math.nan for name in metrics}
    sizes = [row["params"] for row in rows if row["params"] == row["params"]]
    cell |= {
        "params": max(sizes, default=math.nan),
        "status": worst(row["status"] for row in rows),
        "message": "; ".join(dict.fromkeys(part for row in rows for part in (row["message"] or "").split("; ") if part))
        or None,
    }
    for metric, name in spread.items():
        cell |= {f"{name}_{end}": by_metric.get(metric, {}).get(end, math.nan) for end in ("low", "high")}
    for metric in list(spread)[:1]:
        cell |= {"samples": by_metric.get(metric, {}).get("samples"), "n": by_metric.get(metric, {}).get("n", math.nan)}
    return cell


def worst(statuses: Iterable[str]) -> str:
    """The status that a cell is reported with, of those of its rows: the store's rule."""
    return str(min((Status(status) for status in statuses), key=RANK.index))

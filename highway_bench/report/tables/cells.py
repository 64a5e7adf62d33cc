"""From tidy rows, one metric per row, to one row per cell; and the ratio of a column to the baseline's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from highway_bench.report.rows import CELL, groups, rows_of
from highway_bench.results.schema import worst

COPIED = ("run_id", "commit", "time_utc", "torch", "gpu")
NO_SPREAD: Final[Mapping[str, str]] = {}


def by_cell(frame: pd.DataFrame, metrics: Sequence[str], *, spread: Mapping[str, str] = NO_SPREAD) -> pd.DataFrame:
    """One row per cell of ``frame``, with one column per metric, NaN if it was not measured: ``metrics``, present in
    ``frame`` or not, then its other scalars.

    ``block`` and ``family_label`` are names with their options. ``status`` is the worst status of the cell's rows, by
    the store's rule; ``message`` joins the remarks of these rows, each once. ``spread`` maps metrics to the stem of the
    columns ``…_low`` and ``…_high`` for their percentiles; the first of these metrics also gives ``samples``,
    ``paired`` and ``n``.
    """
    scalars = frame[frame["axis"].fillna("") == ""]
    copied = (*CELL, "label", "family_label", "machine_label", *COPIED)
    columns = [*copied, "params", "status", "message"]
    further = [name for name in scalars["metric"].dropna().unique() if name not in ("", *columns)]
    metrics = list(dict.fromkeys([*metrics, *further]))
    columns += metrics
    columns += [f"{name}_{end}" for name in spread.values() for end in ("low", "high")]
    columns += ["samples", "paired", "n"] if spread else []
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    # Plain dictionaries: pandas takes milliseconds per group, and a store has thousands of cells.
    for record in rows_of(scalars):
        key = tuple(None if value != value else value for value in (record[name] for name in CELL))
        key += (record["digest"] if record["trial"] == record["trial"] else None,)  # trials of all rates are "tuned"
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
        "status": str(worst(row["status"] for row in rows)),
        "message": "; ".join(dict.fromkeys(part for row in rows for part in (row["message"] or "").split("; ") if part))
        or None,
    }
    for metric, name in spread.items():
        cell |= {f"{name}_{end}": by_metric.get(metric, {}).get(end, math.nan) for end in ("low", "high")}
    for metric in list(spread)[:1]:
        sampled = by_metric.get(metric, {})
        cell |= {"samples": sampled.get("samples"), "paired": sampled.get("paired"), "n": sampled.get("n", math.nan)}
    return cell


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

"""The measurements of cells: their scalar metrics, and which cells ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields

import pandas as pd

from highway_bench.cell import Cell, canonical
from highway_bench.report.rows import groups
from highway_bench.results.schema import LATER_ATTEMPT, OUTCOMES, worst

Metrics = Mapping[str, float]
"""The scalar metrics of a cell."""


def measured(rows: pd.DataFrame, cells: Iterable[Cell]) -> dict[Cell, dict[str, float]]:
    """The scalar metrics of every cell in prepared ``rows``; empty for a cell without a result. A null is NaN.

    ``params``, the network's number of parameters, is among them where it is known."""
    by_key = metrics_by_key(rows)
    return {cell: by_key.get(cell.key, {}) for cell in cells}


def metrics_by_key(rows: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The scalar metrics of every cell with a result, by the key of the cell."""
    # A cell that failed has rows too. Their nulls must not be taken for diverged losses
    frame = rows[(rows["axis"].fillna("") == "") & rows["status"].isin(OUTCOMES)]
    return {key: _metrics(part) for key, part in rows_by_key(frame).items()}


def _metrics(rows: pd.DataFrame) -> dict[str, float]:
    metrics = dict(zip(rows["metric"], rows["value"], strict=True))
    known = rows["params"].dropna()
    return metrics | ({"params": float(known.iloc[-1])} if len(known) else {})


def ended_cells(rows: pd.DataFrame) -> set[str]:
    """Keys of the cells in ``rows`` that ended with a result; diverged and stalled runs are results."""
    first = rows[rows["axis"].ne(LATER_ATTEMPT)]
    return {key for key, part in rows_by_key(first).items() if worst(part["status"]) in OUTCOMES}


def rows_by_key(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """``rows`` by the key of their cell."""
    if "as_run" in rows:
        rows = rows.assign(recipe=rows["as_run"])
    return {canonical(cell): part for cell, part in groups(rows, [item.name for item in fields(Cell)])}

"""The measurements of cells: their scalar metrics, and which cells ended."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields

import pandas as pd

from highway_bench.cell import Cell, canonical
from highway_bench.frames.rows import plain, rows_of
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
    found: dict[str, dict[str, float]] = {}
    numbers = [frame[name].astype("float64").tolist() for name in ("value", "params")]
    for key, metric, value, params in zip(keys_of(frame), frame["metric"], *numbers, strict=True):
        metrics = found.setdefault(key, {})
        metrics[metric] = value
        if not math.isnan(params):
            metrics["params"] = params
    return found


def ended_cells(rows: pd.DataFrame) -> set[str]:
    """Keys of the cells in ``rows`` that ended with a result; diverged and stalled runs are results."""
    first = rows[rows["axis"].ne(LATER_ATTEMPT)]
    statuses: dict[str, set[str]] = {}
    for key, status in zip(keys_of(first), first["status"], strict=True):
        statuses.setdefault(key, set()).add(status)
    return {key for key, ended in statuses.items() if worst(ended) in OUTCOMES}


def keys_of(rows: pd.DataFrame) -> list[str]:
    """The key of the cell of each row."""
    if "as_run" in rows:
        rows = rows.assign(recipe=rows["as_run"])
    names = [item.name for item in fields(Cell)]
    numbers = rows.groupby(names, dropna=False, sort=False).ngroup()
    firsts = rows.loc[numbers.drop_duplicates().index]
    keys = [canonical({name: plain(value) for name, value in one.items()}) for one in rows_of(firsts[names])]
    return [keys[number] for number in numbers]

"""The rows that a report reads: the newest of each cell, with a name to print for every block and family.

A store keeps old rows of a cell after its source changed. Only the rows of the digest that a run last requested are
reported, so that no stale number appears next to a new one, even where an edit was undone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.results.schema import COLUMNS

Runs = Mapping[str, Mapping[str, Any]]
"""What is known of every run, by its id, as the store keeps it."""

CELL: Final = (
    "task",
    "block",
    "block_options",
    "family",
    "family_options",
    "match",
    "width",
    "nominal_width",
    "depth",
    "batch_size",
    "seq_len",
    "phase",
    "dtype",
    "device",
    "mode",
    "dataset",
    "recipe",
    "trial",
    "seed",
    "threads",
    "machine",
)
"""Columns that tell one cell on one machine from another."""

TOGETHER: Final = (
    "run_id",
    "recipe",
    "machine",
    "threads",
    "family_label",
    "depth",
    "nominal_width",
    "match",
    "batch_size",
    "seq_len",
    "phase",
    "dtype",
    "device",
    "dataset",
    "mode",
)
"""Columns equal within a set of cells whose step times were sampled in turn: these differ in their block alone."""

CONTEST: Final = (
    "family_label",
    "dataset",
    "recipe",
    "batch_size",
    "seq_len",
    "match",
    "nominal_width",
    "dtype",
    "device",
    "machine",
    "machine_label",
)
"""Columns equal within a set of trained networks that may be compared: they differ in block, depth and seed.

``machine_label`` follows from ``machine``: it is the part that is printed."""


def prepared(rows: pd.DataFrame, runs: Runs | None = None) -> pd.DataFrame:
    """``rows`` of a store, the newest of each cell, with columns ``label``, ``family_label`` and ``machine_label``.

    ``machine_label`` is the machine where there are several, else empty. ``runs`` are the store's: of several digests
    of a cell, the one that a run requested last counts. A frame that is prepared already is returned as it is.

    Raises ``NothingMeasured`` for a frame without rows and ``BadInput`` for one that lacks columns of the schema.
    """
    if "label" in rows and "family_label" in rows:
        return rows
    missing = [name for name in COLUMNS if name not in rows]
    if missing:
        raise BadInput(f"not a results frame: no column {', '.join(missing[:3])}")
    if rows.empty:
        raise NothingMeasured("the store has no rows to report on")
    frame = _newest(rows, runs or {}).copy()
    for name, (kind, _) in COLUMNS.items():
        if kind == "TEXT":
            text = frame[name].astype(object)
            frame[name] = text.where(text.notna(), None)
        else:
            numbers = pd.to_numeric(frame[name]).astype("float64")
            whole = kind == "INTEGER" and numbers.notna().all()
            frame[name] = numbers.astype("int64") if whole else numbers
    frame["label"] = _labels(frame["block"], frame["block_options"])
    frame["family_label"] = _labels(frame["family"], frame["family_options"])
    several = len(set(frame["machine"].dropna())) > 1
    frame["machine_label"] = frame["machine"].fillna("") if several else ""
    return frame


def of_task(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """The prepared rows of one task."""
    frame = prepared(rows)
    return frame[frame["task"] == task]


def scalar(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Rows of one metric that has a single value a cell."""
    return frame[(frame["metric"] == metric) & (frame["axis"].fillna("") == "")]


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of ``frame`` as dictionaries by column."""
    return [dict(zip(map(str, frame.columns), row, strict=True)) for row in frame.itertuples(index=False, name=None)]


def groups(frame: pd.DataFrame, columns: Iterable[str]) -> Iterable[tuple[dict[str, Any], pd.DataFrame]]:
    """``frame`` in groups of equal ``columns``, nulls being equal, each with those columns' values by name."""
    columns = list(columns)
    for values, part in frame.groupby(columns, dropna=False, sort=False):
        yield {name: _plain(value) for name, value in zip(columns, values, strict=True)}, part


def recipe_of(text: object) -> dict[str, Any]:
    """A recipe column's value as a dictionary; an absent one is empty."""
    return dict(json.loads(text)) if isinstance(text, str) and text else {}


def samples_of(text: object) -> list[float]:
    """A samples column's value as numbers, in the order they were taken, NaN for null; an absent one is empty."""
    values = json.loads(text) if isinstance(text, str) and text else []
    return [math.nan if value is None else float(value) for value in values]


def options_text(text: object) -> str:
    """Options as they are read: ``gate_bias=-2, init=he``; empty where there are none."""
    return ", ".join(f"{name}={value}" for name, value in recipe_of(text).items())


def _plain(value: Any) -> Any:
    """A Python value of a frame's: no missing-value markers, no numpy scalars, whole numbers whole."""
    if pd.isna(value):
        return None
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _labels(names: pd.Series, options: pd.Series) -> list[str]:
    pairs = zip(names.fillna("").astype(str), options.map(options_text), strict=True)
    return [f"{name} {extra}".strip() for name, extra in pairs]


def _newest(rows: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """The rows of each cell's digest that a run measured, or found in the store, last."""
    requested: dict[str, str] = {}
    for run in runs.values():
        requested |= {
            digest: max(requested.get(digest, ""), str(run.get("started") or "")) for digest in run.get("digests") or ()
        }
    pairs = zip(rows["time_utc"].fillna(""), rows["digest"], strict=True)
    times = [max(str(time), requested.get(digest, "")) for time, digest in pairs]
    ordered = rows.assign(_time=times).sort_values("_time", kind="stable")
    # A digest's rows are of one cell. Nulls compare unequal to themselves, so keys are text.
    cells = ordered.drop_duplicates(["digest", "machine"], keep="last")
    key = cells[list(CELL)].astype("string").fillna("").agg("\x1f".join, axis=1)
    newest = cells.loc[~key.duplicated(keep="last"), ["digest", "machine"]]
    measured = pd.MultiIndex.from_frame(ordered[["digest", "machine"]].fillna(""))
    reported = ordered[ordered["digest"].isna() | measured.isin(pd.MultiIndex.from_frame(newest.fillna("")))]
    return rows.loc[reported.index.sort_values()]

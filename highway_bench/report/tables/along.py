"""What a task stored along an axis: by layer, by training step, by epoch."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from highway_bench.report.rows import in_order, of_task

PLACE: Final = (
    "family_label",
    "dataset",
    "depth",
    "block",
    "recipe",
    "match",
    "nominal_width",
    "batch_size",
    "seq_len",
    "dtype",
    "device",
    "machine",
    "machine_label",
)
"""Columns equal within what one row of these tables sums up: cells that differ in their seed. ``block`` has options."""

POINTS: Final = 13
"""Places of an axis that are shown at most, from the first to the last; the store has them all."""

ITEMS: Final = "test item"
"""An axis of single items, whose values are classes: a median of them says nothing."""


def along(rows: pd.DataFrame, task: str) -> dict[str, pd.DataFrame]:
    """By axis, a row a place and point of the axis: ``PLACE``, ``index``, ``n`` networks, and the median over them of
    every metric that the task stored there, under its name. Trials of a search are left out."""
    frame = of_task(rows, task)
    frame = frame[frame["axis"].fillna("").ne("") & frame["axis"].ne(ITEMS) & frame["trial"].isna()]
    frame = frame[frame["value"].notna()].assign(block=frame["label"])
    return {str(axis): _table(part) for axis, part in frame.groupby("axis", sort=False)}


def _table(part: pd.DataFrame) -> pd.DataFrame:
    part = part.assign(place=part.groupby(list(PLACE), dropna=False, sort=False).ngroup())
    about = part.drop_duplicates("place").set_index("place")[list(PLACE)]
    counts = part.groupby("place")["digest"].nunique().rename("n")
    values = part.pivot_table(index=["place", "index"], columns="metric", values="value", aggfunc="median")
    values = values[list(dict.fromkeys(part["metric"]))].reset_index()
    thin = values.groupby("place")["index"].transform(_is_shown).astype(bool)
    table = values[thin].join(about, on="place").join(counts, on="place").drop(columns="place")
    return in_order(table, ("family_label", "dataset", "depth", "recipe", "machine", "block", "index"))


def _is_shown(points: pd.Series) -> pd.Series:
    """Whether each point is one of ``POINTS`` that lie evenly between the first and the last."""
    ordered = np.sort(points.unique())
    chosen = ordered[np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).round().astype(int))]
    return points.isin(chosen)

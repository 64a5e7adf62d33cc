"""Values by layer, by training step or by epoch."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from highway_bench.report.descriptions import Descriptions
from highway_bench.report.rows import of_task

SETTING: Final = (
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
"""Columns that are equal for the cells in one row, which differ in their seed. ``block`` includes its options."""

POINTS: Final = 13
"""The largest number of points of an axis in a table; the store has all points."""

ITEMS: Final = "test item"
"""The axis of single test items. Its values are classes, of which a median is meaningless."""


def by_axis(rows: pd.DataFrame, task: str, about: Descriptions) -> dict[str, pd.DataFrame]:
    """The tables of ``Results.by_axis``."""
    frame = of_task(rows, task)
    frame = frame[frame["axis"].fillna("").ne("") & frame["axis"].ne(ITEMS) & frame["trial"].isna()]
    frame = frame[frame["value"].notna()].assign(block=frame["label"])
    return {str(axis): _table(part, about) for axis, part in frame.groupby("axis", sort=False)}


def _table(part: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    part = part.assign(setting=part.groupby(list(SETTING), dropna=False, sort=False).ngroup())
    shared = part.drop_duplicates("setting").set_index("setting")[list(SETTING)]
    counts = part.groupby("setting")["digest"].nunique().rename("n")
    values = part.pivot_table(index=["setting", "index"], columns="metric", values="value", aggfunc="median")
    values = values[list(dict.fromkeys(part["metric"]))].reset_index()
    selected = values.groupby("setting")["index"].transform(_is_selected).astype(bool)
    table = values[selected].join(shared, on="setting").join(counts, on="setting").drop(columns="setting")
    return about.in_order(table, ("family_label", "dataset", "depth", "recipe", "machine", "block", "index"))


def _is_selected(points: pd.Series) -> pd.Series:
    """Whether each point is one of up to ``POINTS`` evenly spaced points, the first and the last included."""
    ordered = np.sort(points.unique())
    chosen = ordered[np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).round().astype(int))]
    return points.isin(chosen)

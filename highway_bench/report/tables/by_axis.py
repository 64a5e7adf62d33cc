"""What a task stored by layer, by training step or by epoch."""

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
"""Columns equal within the cells that one row summarises: these differ in their seed. ``block`` has its options."""

POINTS: Final = 13
"""Points of an axis that are shown at most, from the first to the last; the store has them all."""

ITEMS: Final = "test item"
"""An axis of single items, whose values are classes: a median of them says nothing."""


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
    thin = values.groupby("setting")["index"].transform(_is_shown).astype(bool)
    table = values[thin].join(shared, on="setting").join(counts, on="setting").drop(columns="setting")
    return about.in_order(table, ("family_label", "dataset", "depth", "recipe", "machine", "block", "index"))


def _is_shown(points: pd.Series) -> pd.Series:
    """Whether each point is one of ``POINTS`` that lie evenly between the first and the last."""
    ordered = np.sort(points.unique())
    chosen = ordered[np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).round().astype(int))]
    return points.isin(chosen)

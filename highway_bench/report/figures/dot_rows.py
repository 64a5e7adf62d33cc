"""Dot plots: one row per family, depth and size, and one mark per block in each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from highway_bench.report.figures.base import dodge, in_lines, panels
from highway_bench.report.rows import groups, rows_of

SETTING: Final = ("family_label", "depth", "nominal_width", "batch_size", "seq_len", "dataset")
"""Columns that are equal within one row of a dot plot."""
MOST: Final = 12
"""The largest number of rows in one picture."""

WORDS: Final = {"depth": "depth", "nominal_width": "width", "batch_size": "batch", "seq_len": "length", "dataset": ""}

DotRow = tuple[dict[str, Any], pd.DataFrame]
"""The values of the columns ``SETTING`` of a row, and its cells."""


def in_pictures(cells: pd.DataFrame) -> Iterator[list[DotRow]]:
    """The rows of a dot plot of ``cells``, divided among as few pictures as possible, of about equal length."""
    rows = list(groups(cells, SETTING))
    pictures = math.ceil(len(rows) / MOST)
    size = math.ceil(len(rows) / pictures)
    yield from (rows[start : start + size] for start in range(0, len(rows), size))


def extremes(cells: pd.DataFrame, column: str, text: Callable[[dict[str, Any]], str]) -> str:
    """The least and the greatest value of ``column``, each as ``text`` with its block, family and depth."""
    ranked = rows_of(cells.sort_values(column, kind="stable"))
    ends = [
        f"{text(cell)} ({cell['block']}, {cell['family_label']}, depth {cell['depth']})"
        for cell in (ranked[0], ranked[-1])
    ]
    return " to ".join(dict.fromkeys(ends))


def row_names(settings: Sequence[dict[str, Any]]) -> list[str]:
    """A name per row: its family, its depth if there are several, and its other differences from rows of its family."""
    by_family: dict[object, list[dict[str, Any]]] = {}
    for setting in settings:
        by_family.setdefault(setting["family_label"], []).append(setting)
    deep = len({setting["depth"] for setting in settings}) > 1
    return [_name(setting, by_family[setting["family_label"]], deep) for setting in settings]


def dot_plot(
    rows: Sequence[DotRow],
    blocks: Sequence[str],
    draw: Callable[[Axes, float, str, dict[str, Any]], str],
    *,
    spacing: float,
) -> tuple[Figure, Axes, list[str]]:
    """A figure with the marks of each row below each other, its axes, and descriptions of the marks for its alt text.

    ``draw(axes, height, block, cell)`` draws a cell and returns its description; ``spacing`` is in inches per mark.
    """
    names = row_names([setting for setting, _ in rows])
    figure, (axes,) = panels(1, 1, max(1.6, len(rows) * (spacing * len(blocks) + 0.14)))
    described: list[str] = []
    for row, (_, part) in enumerate(rows):
        for index, block in enumerate(blocks):
            height = row + dodge(index, len(blocks))
            cells = rows_of(part[part["block"] == block])
            described += [f"{names[row]}, {block}: {draw(axes, height, block, cell)}" for cell in cells]
    axes.set_yticks(range(len(rows)), [in_lines(name) for name in names], linespacing=1.0)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(False, axis="y")
    for edge in range(1, len(rows)):
        axes.axhline(edge - 0.5, color="#e3e3e3", linewidth=0.6)
    return figure, axes, described


def _name(setting: dict[str, Any], family: list[dict[str, Any]], deep: bool) -> str:
    differing = [key for key in WORDS if (key == "depth" and deep) or len({other[key] for other in family}) > 1]
    parts = [f"{WORDS[key]} {_text(setting[key])}".strip() for key in differing if setting[key] is not None]
    return ", ".join([str(setting["family_label"]), *parts])


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)

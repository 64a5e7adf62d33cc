"""The overview: connections by kind of layer and depth, with a symbol and a colour for what became of each."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from highway_bench.measure.paired import UNDECIDED
from highway_bench.report.choice.columns import BEHIND, BEST, NOT_SEPARATED
from highway_bench.report.choice.ranking import rankings_of
from highway_bench.report.choice.screen import SYMBOLS, overview
from highway_bench.report.figures.base import Picture, head, joined, settings
from highway_bench.success.ladder import DIVERGES, FAILS, SLOW

COLOURS: Final = {
    BEST: "#74add8",
    NOT_SEPARATED: "#b0d0ea",
    BEHIND: "#e3eef8",
    SLOW: "#fbf0c0",
    FAILS: "#f9d3b5",
    DIVERGES: "#f2b6a0",
    UNDECIDED: "#eeeeee",
}


def overview_picture(table: pd.DataFrame) -> Picture:
    """The overview of a wide ``table``."""
    cells = overview(rankings_of(table))
    width, height = 2.0 + 0.27 * len(cells["columns"]), 1.4 + 0.2 * len(cells["rows"])
    with settings():
        figure = Figure(figsize=(width, height), layout="constrained")
        draw_overview(figure.subplots(), cells)
        title = "What to take: connections by kind of layer and depth"
        head(figure, title)
    best = [
        f"{column['label']}, depth {column['depth']}: {row['name']}"
        for number, column in enumerate(cells["columns"])
        for row in cells["rows"]
        if row["cells"][number]["state"] == BEST
    ]
    caption = ", ".join(f"{symbol} {state}" for state, symbol in SYMBOLS.items())
    caption = f"By held-out loss, at the better start: {caption}; empty: not measured."
    return Picture("overview", title, f"The best: {joined(best, 60)}", caption, figure)


def draw_overview(axes: Axes, cells: dict[str, Any]) -> None:
    """Draw the ``cells`` of ``choice.screen.overview`` into ``axes``."""
    columns, rows = cells["columns"], cells["rows"]
    for down, row in enumerate(rows):
        for across, cell in enumerate(row["cells"]):
            state = cell["state"].replace("-", " ")
            if state:
                axes.add_patch(Rectangle((across, down), 0.96, 0.92, facecolor=COLOURS[state], linewidth=0))
                axes.text(across + 0.48, down + 0.48, SYMBOLS[state], ha="center", va="center", fontsize=8)
    axes.set_xlim(0, len(columns))
    axes.set_ylim(len(rows), 0)
    axes.set_yticks([number + 0.5 for number in range(len(rows))], [row["name"] for row in rows])
    axes.set_xticks([number + 0.5 for number in range(len(columns))], [str(one["depth"]) for one in columns])
    axes.xaxis.tick_top()
    starts = [n for n, one in enumerate(columns) if n == 0 or one["kind"] != columns[n - 1]["kind"]]
    for start, end in zip(starts, [*starts[1:], len(columns)], strict=True):
        words = columns[start]["label"].replace(", ", ",\n")
        axes.text((start + end) / 2, -1.3, words, ha="center", va="bottom", fontsize=7.5, fontweight="bold")
        axes.axvline(start - 0.02, color="black", linewidth=0.6)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)

"""Depth mixing: the weights of the earlier branches in each layer's input, and their shares, as small matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    panels,
    register_figure,
    settings,
    shortened,
)
from highway_bench.report.format import three
from highway_bench.report.labels import contest_text, family_name
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups

MATRICES: Final = (
    ("mixing_start", "weights, start"),
    ("mixing_end", "weights, trained"),
    ("mixing_share_end", "shares, trained"),
)
BLOCKS: Final = 6
"""The largest number of blocks in one picture."""
CELLS: Final = 5
"""The largest number of rows and of columns that are drawn of one matrix."""
DARK: Final = 0.55
"""From this value on, numbers in a cell are white."""


@register_figure("mixing", title="depth mixing", order=125, section="gates")
def depth_mixing(results: Results) -> list[Picture]:
    """One row of matrices per block: each cell is shaded and has its number."""
    table = results.mixing()
    if table.empty:
        raise NothingToShow("depth mixing needs the gates task")
    pictures: list[Picture] = []
    for contest, part in groups(table, [*CONTEST, "depth"]):
        labels = results.about.block_order(part["label"])
        for first in range(0, len(labels), BLOCKS):
            pictures.append(_picture(f"mixing-{len(pictures) + 1}", contest, part, labels[first : first + BLOCKS]))
    return pictures


def _picture(name: str, contest: dict[str, Any], part: pd.DataFrame, labels: list[str]) -> Picture:
    matrices = {
        (str(label), str(metric)): own.pivot_table(
            index="layer", columns="branch", values="value"
        )  # the mean over seeds
        for (label, metric), own in part.groupby(["label", "metric"])
    }
    seeds = part["seed"].nunique()
    alt: list[str] = []
    with settings():
        figure, axes = panels(len(labels) * len(MATRICES), len(MATRICES), 1.5)
        for row, label in enumerate(labels):
            for panel, (metric, words) in zip(axes[row * len(MATRICES) :], MATRICES, strict=False):
                matrix = matrices[label, metric]
                _draw(panel, thinned(matrix))
                panel.set_title(f"{shortened(label, 22)}\n{words}", loc="left", fontsize=7)
                alt.append(f"{label}, {words}: {_extremes(matrix)}")
        for panel in axes[:: len(MATRICES)]:
            panel.set_ylabel("layer")
        for panel in axes[-len(MATRICES) :]:
            panel.set_xlabel("branch")
        title = f"{family_name(contest)}, depth {contest['depth']}: {_finding(matrices, labels)}"
        head(figure, title)
    caption = (
        f"{contest_text(contest)}. Means over n = {seeds} seeds. Row: the layer that reads; column: the branch whose "
        "output it reads, 0 for the first layer's input. A weight is 1 where the output is added as it is; the shares "
        f"of a whole row sum to 1. At most {CELLS} rows and columns of a matrix are drawn."
    )
    return Picture(name, title, f"Depth mixing. {joined(alt, 60)}", caption, figure)


def thinned(matrix: pd.DataFrame) -> pd.DataFrame:
    """At most ``CELLS`` evenly spaced rows and columns, the first and the last among them."""
    rows, columns = (np.unique(np.linspace(0, size - 1, min(size, CELLS)).round().astype(int)) for size in matrix.shape)
    return matrix.iloc[rows, columns]


def _draw(panel: Axes, matrix: pd.DataFrame) -> None:
    values = matrix.to_numpy(dtype=float)
    at = [np.arange(size + 1) - 0.5 for size in values.shape[::-1]]
    panel.pcolormesh(*at, np.abs(values), cmap="Greys", vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
    panel.invert_yaxis()
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if abs(value) >= DARK else "black"
            panel.text(column, row, cell_text(value), ha="center", va="center", fontsize=5.5, color=colour)
    panel.set_yticks(range(len(matrix.index)), [f"{layer:g}" for layer in matrix.index], fontsize=6)
    panel.set_xticks(range(len(matrix.columns)), [f"{branch:g}" for branch in matrix.columns], fontsize=6)
    panel.grid(False)


def cell_text(value: float) -> str:
    """A number in few characters: .33, 1, 12, −.05, >99."""
    if abs(value) >= 99.5:
        return ">99" if value > 0 else "<−99"
    text = f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.2g}"
    return text.replace("-", "−")


def _extremes(matrix: pd.DataFrame) -> str:
    """The last row's least and largest value, in words."""
    last = matrix.iloc[-1].dropna()
    if last.empty:
        return "no finite value"
    return (
        f"in layer {matrix.index[-1]:g} from {three(last.min())} for branch {last.idxmin():g} "
        f"to {three(last.max())} for branch {last.idxmax():g}"
    )


def _finding(matrices: Mapping[tuple[str, str], pd.DataFrame], labels: list[str]) -> str:
    """How much of the last layer's input is the first layer's, at most and at least."""
    shares = {label: matrices[label, "mixing_share_end"].iloc[-1].get(0, math.nan) for label in labels}
    ranked = sorted((share, label) for label, share in shares.items() if math.isfinite(share))
    if not ranked:
        return "no finite share"
    text = f"the first layer's input is {three(ranked[-1][0])} of the last layer's under {ranked[-1][1]}"
    return text + (f", {three(ranked[0][0])} under {ranked[0][1]}" if len(ranked) > 1 else "")

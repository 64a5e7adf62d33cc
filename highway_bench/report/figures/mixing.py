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


@register_figure("mixing", title="depth mixing", order=125, section="gates")
def depth_mixing(results: Results) -> list[Picture]:
    """One row of matrices per block: each cell is shaded, and the ends of the last row are numbers."""
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
    alike = len({matrix.shape for matrix in matrices.values()}) == 1  # not where a block joins two sublayers as one
    alt: list[str] = []
    with settings():
        figure, axes = panels(len(labels) * len(MATRICES), len(MATRICES), 1.2)
        for row, label in enumerate(labels):
            in_row = axes[row * len(MATRICES) :]
            in_row[0].set_ylabel(shortened(label, 22), fontsize=7)
            for panel, (metric, words) in zip(in_row, MATRICES, strict=False):
                matrix = matrices[label, metric]
                _draw(panel, matrix)
                heading = f"{words}\n{_ends(matrix)}" if row == 0 else _ends(matrix)
                panel.set_title(heading, loc="left", fontsize=7)
                if alike:  # the axes of the last row and the first column are those of all
                    last, first = label == labels[-1], panel is in_row[0]
                    panel.tick_params(bottom=last, labelbottom=last, left=first, labelleft=first)
                alt.append(f"{label}, {words}: {_extremes(matrix)}")
        figure.supylabel("layer that reads", fontsize=8)
        figure.supxlabel("branch that is read", fontsize=8)
        title = f"{family_name(contest)}, depth {contest['depth']}: {_finding(matrices, labels)}"
        head(figure, title)
    caption = (
        f"{contest_text(contest)}. Means over n = {seeds} seeds. Row: the layer that reads; column: the branch whose "
        "output it reads, 0 for the first layer's input. The darker the larger, black from 1 on; the numbers are the "
        "last layer's for its first and its last branch. A weight is 1 where the output is added as it is; the shares "
        "of a row sum to 1."
    )
    return Picture(name, title, f"Depth mixing. {joined(alt, 60)}", caption, figure)


def _draw(panel: Axes, matrix: pd.DataFrame) -> None:
    """An image with a pixel for each number: as shapes, the matrices would be most of the bytes of a page."""
    panel.imshow(
        np.abs(matrix.to_numpy(dtype=float)), cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="none"
    )
    for index, axis in ((matrix.index, panel.yaxis), (matrix.columns, panel.xaxis)):
        ends = sorted({0, len(index) - 1})
        axis.set_ticks(ends, [f"{index[end]:g}" for end in ends], fontsize=6)
    panel.grid(False)


def _ends(matrix: pd.DataFrame) -> str:
    """The last row's first and last value."""
    last = matrix.iloc[-1].dropna()
    return f"{cell_text(last.iloc[0])} … {cell_text(last.iloc[-1])}" if len(last) else "not finite"


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

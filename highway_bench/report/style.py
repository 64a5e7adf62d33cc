"""One colour, one marker and one dash a block, the same in every figure of a page.

Colours are Okabe and Ito's, which readers with any of the common colour deficiencies can tell apart; markers and
dashes say the same again for print in grey. Other blocks get a free style by their name, so that the same set of
blocks is always drawn the same way.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import seaborn

from highway_bench.report.descriptions import UNDESCRIBED, Descriptions

Dash = Literal["-", "none"] | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Style:
    """How one block is drawn."""

    colour: str
    marker: str
    dash: Dash


KNOWN: Final[dict[str, Style]] = {
    "plain": Style("#000000", "o", "-"),
    "highway": Style("#0072B2", "s", "-"),
    "highway-free": Style("#56B4E9", "D", (0, (5.0, 1.5))),
    "residual": Style("#D55E00", "^", "-"),
    "pre-norm": Style("#009E73", "v", (0, (4.0, 1.0, 1.0, 1.0))),
    "post-norm": Style("#CC79A7", "P", (0, (1.5, 1.2))),
}

# For others: darker or browner than those above, each with a marker that no block above has.
_COLOURS: Final = ("#E69F00", "#7A5195", "#8C6D31", "#B2182B", "#4D4D4D", "#1B7837")
_MARKERS: Final = ("X", "<", ">", "p", "h", "*", "d", "8")
_DASHES: Final[tuple[Dash, ...]] = ((0, (6.0, 2.0)), (0, (3.0, 1.0, 1.0, 1.0, 1.0, 1.0)), (0, (2.0, 2.0)))
_STYLES: Final = len(_COLOURS) * len(_MARKERS)


def styles(labels: Iterable[str], about: Descriptions = UNDESCRIBED) -> dict[str, Style]:
    """A style for every one of ``labels``, in the order in which blocks are listed; no two alike (up to 48 others).

    A block's style follows from its name; where two names give one style the later in the list takes the next.
    """
    chosen: dict[str, Style] = {}
    taken: set[int] = set()
    for label in about.block_order(labels):
        if label in KNOWN:
            chosen[label] = KNOWN[label]
            continue
        index = _free(zlib.crc32(label.encode()) % _STYLES, taken)
        taken.add(index)
        row, column = divmod(index, len(_COLOURS))
        chosen[label] = Style(_COLOURS[column], _MARKERS[row], _DASHES[(row + column) % len(_DASHES)])
    return chosen


def _free(index: int, taken: set[int]) -> int:
    """The first style from ``index`` on whose colour no other has while colours last, else any that is free."""
    colours = {other % len(_COLOURS) for other in taken}
    after = [(index + step) % _STYLES for step in range(_STYLES)]
    fresh = [style for style in after if style % len(_COLOURS) not in colours]
    free = fresh or [style for style in after if style not in taken]
    return free[0] if free else index


RC: Final[dict[Any, Any]] = (
    seaborn.axes_style("whitegrid")
    | seaborn.plotting_context("paper")
    | {
        "svg.fonttype": "path",  # letters as outlines: the same picture whatever fonts a reader has
        "svg.hashsalt": "highway_bench",  # ids that do not change from one writing to the next
        "font.family": "DejaVu Sans",  # comes with matplotlib
        "font.size": 9.0,
        "axes.titlesize": 9.5,
        "axes.labelsize": 9.0,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "legend.fontsize": 8.5,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "black",
        "axes.linewidth": 0.8,
        "xtick.bottom": True,
        "ytick.left": True,
        "grid.color": "#e3e3e3",
        "grid.linewidth": 0.6,
        "lines.markersize": 5.0,
        "text.parse_math": False,  # a dollar sign in a plug-in's name is a dollar sign
        "axes.formatter.use_mathtext": False,
    }
)
"""matplotlib's settings while a figure is drawn and saved: seaborn's for paper, with what a page needs."""

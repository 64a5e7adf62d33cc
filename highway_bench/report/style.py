"""One colour, one marker and one dash a block, the same in every figure of a page.

Colours are Okabe and Ito's, which readers with any of the common colour deficiencies can tell apart; markers and
dashes say the same again for print in grey. Blocks that are not known here get a free place by their name, so the
same set of blocks is always drawn the same way.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import seaborn

from highway_bench.report.rows import block_order

Dash = Literal["-", "none"] | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """How one block is drawn."""

    colour: str
    marker: str
    dash: Dash


KNOWN: Final[dict[str, Look]] = {
    "plain": Look("#000000", "o", "-"),
    "highway": Look("#0072B2", "s", "-"),
    "highway-free": Look("#56B4E9", "D", (0, (5.0, 1.5))),
    "residual": Look("#D55E00", "^", "-"),
    "pre-norm": Look("#009E73", "v", (0, (4.0, 1.0, 1.0, 1.0))),
    "post-norm": Look("#CC79A7", "P", (0, (1.5, 1.2))),
}

# For others: darker or browner than those above, each with a marker that no known block has.
_COLOURS: Final = ("#E69F00", "#7A5195", "#8C6D31", "#B2182B", "#4D4D4D", "#1B7837")
_MARKERS: Final = ("X", "<", ">", "p", "h", "*", "d", "8")
_DASHES: Final[tuple[Dash, ...]] = ((0, (6.0, 2.0)), (0, (3.0, 1.0, 1.0, 1.0, 1.0, 1.0)), (0, (2.0, 2.0)))
_PLACES: Final = len(_COLOURS) * len(_MARKERS)


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """A look for every one of ``labels``, in the order blocks are listed; no two alike (up to 48 unknown ones).

    A block's place follows from its name; where two names fall on one place the later in the list takes the next.
    """
    chosen: dict[str, Look] = {}
    taken: set[int] = set()
    for label in block_order(labels):
        if label in KNOWN:
            chosen[label] = KNOWN[label]
            continue
        place = _free(zlib.crc32(label.encode()) % _PLACES, taken)
        taken.add(place)
        row, column = divmod(place, len(_COLOURS))
        chosen[label] = Look(_COLOURS[column], _MARKERS[row], _DASHES[(row + column) % len(_DASHES)])
    return chosen


def _free(place: int, taken: set[int]) -> int:
    """The first place from ``place`` on whose colour no other has while colours last, else any that is free."""
    colours = {other % len(_COLOURS) for other in taken}
    after = [(place + step) % _PLACES for step in range(_PLACES)]
    fresh = [spot for spot in after if spot % len(_COLOURS) not in colours]
    free = fresh or [spot for spot in after if spot not in taken]
    return free[0] if free else place


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
"""matplotlib's settings while a figure is drawn and saved: seaborn's for paper, and what a page needs besides."""

"""One colour, marker and dash per block, the same in every figure of a page.

The colours are those of Okabe and Ito, which are distinct under the common colour deficiencies. Markers and dashes
repeat the distinction for print in grey. Blocks of plug-ins get a style that follows from their name, so the same set
of blocks is always drawn in the same way.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import seaborn

from highway_bench.frames.descriptions import UNDESCRIBED, Descriptions
from highway_bench.frames.rows import without_start

Dash = Literal["-", "none"] | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Style:
    """How one block is drawn. Markers of its second start are not ``filled``."""

    colour: str
    marker: str
    dash: Dash
    filled: bool = True

    @property
    def face(self) -> str:
        """The colour inside of markers."""
        return self.colour if self.filled else "white"


NEUTRAL: Final = "#555555"
"""The colour of what belongs to no block: reference lines, notes, marks of the legend."""

KNOWN: Final[dict[str, Style]] = {
    "plain": Style("#000000", "o", "-"),
    "highway": Style("#0072B2", "s", "-"),
    "highway-free": Style("#56B4E9", "D", (0, (5.0, 1.5))),
    "residual": Style("#D55E00", "^", "-"),
    "pre-norm": Style("#009E73", "v", (0, (4.0, 1.0, 1.0, 1.0))),
    "post-norm": Style("#CC79A7", "P", (0, (1.5, 1.2))),
}

# For other blocks: colours that are darker or browner, and markers that no block above has.
_COLOURS: Final = ("#E69F00", "#7A5195", "#8C6D31", "#B2182B", "#4D4D4D", "#1B7837")
_MARKERS: Final = ("X", "<", ">", "p", "h", "*", "d", "8")
_DASHES: Final[tuple[Dash, ...]] = ((0, (6.0, 2.0)), (0, (3.0, 1.0, 1.0, 1.0, 1.0, 1.0)), (0, (2.0, 2.0)))
_STYLES: Final = len(_COLOURS) * len(_MARKERS)


def styles(labels: Iterable[str], about: Descriptions = UNDESCRIBED) -> dict[str, Style]:
    """A style for each of ``labels``, in the order of print. Styles are distinct for up to 48 blocks of plug-ins.

    The style follows from the name. If two names give the same style, the second takes the next free one. Two starts of
    a block have its style, with filled and with open markers.
    """
    chosen: dict[str, Style] = {}
    by_block: dict[str, Style] = {}
    taken: set[int] = set()
    for label in about.block_order(labels):
        block = without_start(label)
        first = by_block.get(block)
        if first is not None and replace(first, filled=False) not in chosen.values():
            chosen[label] = replace(first, filled=False)
            continue
        name = label if first is not None else block
        if name in KNOWN:
            chosen[label] = KNOWN[name]
        else:
            index = _free(zlib.crc32(name.encode()) % _STYLES, taken)
            taken.add(index)
            row, column = divmod(index, len(_COLOURS))
            chosen[label] = Style(_COLOURS[column], _MARKERS[row], _DASHES[(row + column) % len(_DASHES)])
        by_block.setdefault(block, chosen[label])
    return chosen


def of_blocks(styles: Mapping[str, Style], labels: Iterable[str]) -> dict[str, Style]:
    """The entries of ``styles`` for the blocks in ``labels``, in the order of ``styles``."""
    present = set(labels)
    return {block: style for block, style in styles.items() if block in present}


def _free(index: int, taken: set[int]) -> int:
    """The first style from ``index`` on with an unused colour; if all colours are used, the first unused style."""
    colours = {other % len(_COLOURS) for other in taken}
    after = [(index + step) % _STYLES for step in range(_STYLES)]
    fresh = [style for style in after if style % len(_COLOURS) not in colours]
    free = fresh or [style for style in after if style not in taken]
    return free[0] if free else index


RC: Final[dict[Any, Any]] = (
    seaborn.axes_style("whitegrid")
    | seaborn.plotting_context("paper")
    | {
        "svg.fonttype": "none",  # letters are text: a tenth of the bytes of outlines
        "svg.hashsalt": "highway_bench",  # the same ids in every file
        "font.family": "DejaVu Sans",  # part of matplotlib
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
"""matplotlib's settings for drawing and saving: seaborn's paper style with changes for the page."""

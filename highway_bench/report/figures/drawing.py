"""Common marks of figures: a line with a band, a point with an interval, crosses for failures, reference lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from highway_bench.report.format import three
from highway_bench.report.style import NEUTRAL, Style

BAND: Final = 0.18
"""Opacity of a band."""
BAR: Final = 0.45
"""Opacity of an interval's bar."""
EDGE: Final = 0.985
"""The position of crosses for missing and infinite values, as a share of the axis."""
DOTS_BELOW: Final = 10
"""Intervals of fewer seeds have their seeds drawn under them."""


def line_with_band(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    style: Style,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    **options: Any,
) -> None:
    """Draw a line with markers over a band from ``low`` to ``high``; no band if no bound is finite.

    ``options`` are those of ``Axes.plot``.
    """
    if low is not None and high is not None and np.isfinite(np.asarray(low, dtype=float)).any():
        axes.fill_between(x, low, high, color=style.colour, alpha=BAND, linewidth=0)
    drawn = {"color": style.colour, "marker": style.marker, "markerfacecolor": style.face, "linestyle": style.dash}
    axes.plot(x, y, **drawn | options)


def intervals(
    axes: Axes,
    at: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    style: Style,
    *,
    along: Literal["x", "y"] = "y",
    width: float = 2.2,
) -> None:
    """Draw bars from ``low`` to ``high`` parallel to the axis ``along``, at the values ``at`` of the other axis."""
    draw = axes.vlines if along == "y" else axes.hlines
    draw(at, low, high, color=style.colour, linewidth=width, alpha=BAR)


def point_with_interval(
    axes: Axes,
    x: float,
    y: float,
    style: Style,
    bounds: tuple[float, float] | None = None,
    *,
    along: Literal["x", "y"] = "y",
    filled: bool = True,
    **options: Any,
) -> None:
    """Draw a mark, open unless ``filled``, over an interval parallel to the axis ``along``."""
    if bounds is not None:
        intervals(axes, x if along == "y" else y, *bounds, style, along=along)
    face = style.face if filled else "white"
    axes.plot(x, y, color=style.colour, marker=style.marker, linestyle="none", markerfacecolor=face, **options)


def seed_dots(axes: Axes, at: float, values: Iterable[float], style: Style, *, few: int = DOTS_BELOW) -> None:
    """Draw a dot for every finite one of several ``values``, if these are fewer than ``few``: more cover each other."""
    values = list(values)
    finite = [value for value in values if np.isfinite(value)]
    if len(values) > 1 and len(finite) < few:
        options: dict[str, Any] = {"color": style.colour, "linestyle": "none", "markeredgewidth": 0, "zorder": 1.5}
        axes.plot([at] * len(finite), finite, marker=".", markersize=4.5, alpha=0.55, **options)


def some_diverged(axes: Axes, at: Sequence[float], counts: Sequence[int], style: Style) -> None:
    """Draw a small cross at the top of the axes wherever some seeds diverged, and its number below it."""
    known = [(x, number) for x, number in zip(at, counts, strict=True) if number > 0]
    if not known:
        return
    crosses(axes, [x for x, _ in known], style, markersize=4)
    for x, number in known:
        axes.annotate(
            f"{number}",
            (x, EDGE),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, -9),
            textcoords="offset points",
            ha="center",
            fontsize=6.5,
            color=style.colour,
        )


def crosses(axes: Axes, at: float | Sequence[float], style: Style, **options: Any) -> None:
    """Draw crosses at the top of the axes, for failures and infinite values. ``options`` are those of ``Axes.plot``."""
    x, top = np.atleast_1d(at), axes.get_xaxis_transform()
    y = np.full(len(x), EDGE)
    axes.plot(x, y, marker="x", color=style.colour, linestyle="none", transform=top, clip_on=False, **options)


SIDES: Final[Mapping[str, tuple[float, Mapping[str, Any]]]] = {
    "right": (0.99, {"xytext": (0, 2), "ha": "right"}),
    "outside": (1.01, {"xytext": (0, 0), "ha": "left", "va": "center"}),
}
"""Of the names of reference losses: the x position, and how the text lies there."""


def reference_losses(
    axes: Axes,
    chance: float,
    threshold: float = 0.0,
    *,
    side: Literal["right", "outside"] = "right",
) -> None:
    """Draw the loss of a constant prediction and the threshold of success, each if it is known (above 0).

    Their names, with their numbers, are at the ``right`` inside the axes or ``outside``."""
    x, options = SIDES[side]
    for loss, what in ((chance, "chance"), (threshold, "threshold")):
        if loss > 0:
            axes.axhline(loss, color=NEUTRAL, linewidth=0.8, linestyle=":", zorder=0)
            words: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7.5, "color": NEUTRAL, "zorder": 0}
            axes.annotate(f"{what} {three(loss)}", (x, loss), xycoords=("axes fraction", "data"), **words, **options)

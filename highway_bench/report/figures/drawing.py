"""Common marks of figures: a line with a band, a point with an interval, crosses for failures, reference lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from highway_bench.report.style import Style

BAND: Final = 0.18
"""Opacity of a band."""
BAR: Final = 0.45
"""Opacity of an interval's bar."""
EDGE: Final = 0.985
"""The position of crosses for missing and infinite values, as a share of the axis."""
REFERENCE: Final = "#555555"
"""The colour of lines that mark a limit."""


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


def crosses(
    axes: Axes, at: float | Sequence[float], style: Style, *, edge: Literal["top", "right"], **options: Any
) -> None:
    """Draw crosses at the ``edge`` of the axes, for failures and infinite values, at ``at`` of the other axis."""
    at = np.atleast_1d(at)  # type: ignore[assignment]
    fixed = np.full(len(at), EDGE)  # type: ignore[arg-type]
    x, y = (at, fixed) if edge == "top" else (fixed, at)
    transform = axes.get_xaxis_transform() if edge == "top" else axes.get_yaxis_transform()
    axes.plot(x, y, marker="x", color=style.colour, linestyle="none", transform=transform, clip_on=False, **options)


def reference_losses(axes: Axes, chance: float, threshold: float, *, side: Literal["left", "right"] = "right") -> None:
    """Draw the loss of a constant prediction and the threshold of success, each if it is known (above 0).

    Their names are at one ``side`` of the axes.
    """
    for loss, name in ((chance, "chance"), (threshold, "threshold")):
        if loss > 0:
            axes.axhline(loss, color=REFERENCE, linewidth=0.8, linestyle=":", zorder=0)
            axes.annotate(
                name,
                (0.01 if side == "left" else 0.99, loss),
                xycoords=("axes fraction", "data"),
                xytext=(0, 2),
                textcoords="offset points",
                ha=side,
                fontsize=7.5,
                color=REFERENCE,
                zorder=0,  # behind the marks
            )

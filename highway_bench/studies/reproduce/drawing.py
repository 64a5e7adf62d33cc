"""Pictures of reproductions, by the marks and panels of the report's figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from highway_bench.report.figures.base import Picture, dodge, head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.figures.drawing import (
    DOTS_BELOW,
    SIDES,
    crosses,
    intervals,
    point_with_interval,
    reference_losses,
    seed_dots,
    some_diverged,
)
from highway_bench.report.style import NEUTRAL, Style, styles
from highway_bench.studies.reproduce.quantities import Quantity

__all__ = [
    "DOTS_BELOW",
    "Picture",
    "Style",
    "crosses",
    "dodge",
    "joined",
    "level",
    "line",
    "log_axis",
    "mark",
    "point_with_interval",
    "reference_losses",
    "seed_dots",
    "sheet",
    "some_diverged",
    "styles",
]


class Sheet(NamedTuple):
    """A figure with its panels."""

    title: str
    figure: Figure
    axes: Sequence[Axes]

    def picture(self, name: str, alt: str, caption: str) -> Picture:
        return Picture(name, self.title, alt, caption, self.figure)


@contextmanager
def sheet(
    title: str,
    height: float,
    legends: Mapping[str, Style],
    extra: Iterable[Line2D] = (),
    *,
    count: int = 1,
    lines: bool = True,
    **options: Any,
) -> Iterator[Sheet]:
    """A figure of ``count`` panels to draw on; its title and the legend, of ``legends`` and ``extra``, come last."""
    with settings():
        figure, axes = panels(count, 2, height, **options)
        yield Sheet(title, figure, axes)
        head(figure, title)
        legend(figure, legends, extra, lines=lines)


def line(
    axes: Axes, at: Sequence[float], values: Sequence[Quantity], style: Style, seeds: Iterable[Iterable[float]] = ()
) -> None:
    """Draw a line through ``values`` over their intervals, with an open mark for a single run, and a dot for each of a
    few ``seeds``."""
    axes.plot(at, [one.value for one in values], color=style.colour, linestyle=style.dash)
    intervals(axes, at, [one.low for one in values], [one.high for one in values], style)
    for x, one in zip(at, values, strict=True):
        face = "white" if one.n == 1 else style.colour
        axes.plot(x, one.value, color=style.colour, marker=style.marker, markerfacecolor=face)
    for x, own in zip(at, seeds, strict=False):
        seed_dots(axes, x, own, style)


def level(axes: Axes, y: float, text: str, side: str = "outside") -> None:
    """Draw a dotted line at ``y``, with its name on a side as in ``reference_losses``."""
    x, options = SIDES[side]
    axes.axhline(y, color=NEUTRAL, linewidth=0.8, linestyle=":")
    words: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7.5, "color": NEUTRAL}
    axes.annotate(text, (x, y), xycoords=axes.get_yaxis_transform(), **words, **options)

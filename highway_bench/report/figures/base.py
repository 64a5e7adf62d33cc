"""Common parts of figures: the registry, panels and the sheets that they make, settings, axes, legend, and SVG.

SVG is deterministic and has few bytes, ids that are unique on a page, a title and text for screen readers.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from highway_bench.frames.results import Results
from highway_bench.registry import Registry
from highway_bench.report.style import NEUTRAL, RC, Dash, Style

WIDTH: Final = 4.8
"""Inches. Narrow, so that the text is legible at the width of a phone."""
SVG: Final = "http://www.w3.org/2000/svg"
XLINK: Final = "http://www.w3.org/1999/xlink"
REFERENCE: Final = re.compile(r"url\(#([^)]+)\)")
TARGET: Final = re.compile(r"(?:^|url\()#([^)]+)")
FONTS: Final = ("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
"""The font of figures, and those of a reader without it."""


@dataclass(frozen=True)
class Picture:
    """A drawn figure. ``name`` is the stem of its file, ``title`` the finding, ``alt`` a description in words."""

    name: str
    title: str
    alt: str
    caption: str
    figure: Figure


class NothingToShow(Exception):
    """There are no data for a figure. The message says what it needs."""


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: its ``title``, a function that draws it into an ``Axes``, its connections' ``styles``, and
    what it shows, in words. Panels of one ``sheet`` make one picture, which is named after it. ``height``, in
    inches, is that of panels that have one of their own."""

    title: str
    draw: Callable[[Axes], object]
    styles: Mapping[str, Style]
    described: Sequence[str]
    sheet: str = ""
    height: float = 0.0


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure: its panels from results, and how sheets compose them.

    ``needs`` names the measurement without which there are no panels, ``order`` sorts figures. A sheet has ``columns``
    of panels of ``height`` inches, with the same axes where they are ``shared``. The legend has the connections, with
    ``lines`` or marks (none for ``None``), and ``marks``, a marker by its label.
    """

    name: str
    title: str
    caption: str
    needs: str
    order: int
    panels: Callable[[Results], list[Panel]]
    columns: int = 2
    height: float = 2.2
    shared: bool = False
    lines: bool | None = True
    marks: Mapping[str, str] = field(default_factory=dict)

    def draw(self, results: Results) -> list[Picture]:
        """The sheets of ``results``. Raises ``NothingToShow`` if there are no panels."""
        sheets: dict[str, list[Panel]] = {}
        for panel in self.panels(results):
            sheets.setdefault(panel.sheet, []).append(panel)
        if not sheets:
            raise NothingToShow(f"it needs {self.needs}")
        return [self._sheet(sheet, f"{self.name}-{number}" if len(sheets) > 1 else self.name, found)
                for number, (sheet, found) in enumerate(sheets.items(), start=1)]  # fmt: skip

    def _sheet(self, sheet: str, name: str, found: list[Panel]) -> Picture:
        title = f"{sheet}: {self.title}" if sheet else self.title[0].upper() + self.title[1:]
        with settings():
            height = max(panel.height for panel in found) or self.height
            figure, axes = panels(len(found), self.columns, height, sharex=self.shared, sharey=self.shared)
            titles = [panel.title for panel in found]
            for each, panel in zip(axes, found, strict=True):
                panel.draw(each)
                each.set_title(shortened(panel.title, 60 // self.columns), loc="left", fontsize=title_size(titles))
                if self.shared:
                    each.label_outer()
            head(figure, title)
            used = {label: style for panel in found for label, style in panel.styles.items()}
            extra = [mark(marker, label) for label, marker in self.marks.items()]
            legend(figure, used if self.lines is not None else {}, extra, lines=bool(self.lines))
        described = [f"{panel.title}, {text}" for panel in found for text in panel.described]
        return Picture(name, title, f"{self.title}. {joined(described, 60)}", self.caption, figure)


figures: Registry[FigureKind] = Registry("figure", package="highway_bench.report.figures")


P = TypeVar("P", bound=Callable[[Results], list[Panel]])


def register_figure(name: str, **kind: Any) -> Callable[[P], P]:
    """Decorator: register a function from results to panels, with the other fields of ``FigureKind``."""

    def register(panels_of: P) -> P:
        figures.register(name, FigureKind(name, panels=panels_of, **kind), module=panels_of.__module__)
        return panels_of

    return register


def every_figure() -> list[FigureKind]:
    """All kinds of figures in the order of the page."""
    return sorted((figures.get(name) for name in figures), key=lambda kind: kind.order)


@contextmanager
def settings() -> Iterator[None]:
    """matplotlib's settings of this package, for drawing and for saving."""
    with mpl.rc_context():
        mpl.rcdefaults()  # no settings from the user's matplotlibrc
        mpl.rcParams.update(RC)
        yield


def panels(count: int, columns: int, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` panels in up to ``columns`` columns, each ``height`` inches high; unused ones hidden."""
    columns = min(count, columns)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(WIDTH, rows * height + 0.9), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.set_visible(False)
        above = axes[axes.index(unused) - columns]
        above.xaxis.set_tick_params(which="both", labelbottom=True)  # the lowest visible panel of its column
    return figure, axes[:count]


def head(figure: Figure, title: str) -> None:
    """Write ``title`` above ``figure``, left-aligned, on as many lines as it needs, for which the figure grows."""
    lines = textwrap.wrap(title, 52, break_on_hyphens=False)
    figure.set_figheight(figure.get_figheight() + LINE * (len(lines) - 1))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10.5, fontweight="bold")


LINE: Final = 0.18
"""Inches of a line of the title."""


NARROW: Final = 20  # characters of a label of which three fit next to each other


def handles_of(styles: Mapping[str, Style], *, lines: bool = False) -> list[Line2D]:
    """Legend entries for connections."""
    return [
        mark(style.marker, shortened(name), style.colour, filled=style.filled, line=style.dash if lines else "none")
        for name, style in styles.items()
    ]


def legend(figure: Figure, styles: Mapping[str, Style], extra: Iterable[Line2D] = (), *, lines: bool = False) -> None:
    """One legend for the whole figure, below it."""
    handles = [*handles_of(styles, lines=lines), *extra]
    if not handles:
        return
    columns = 3 if all(len(str(handle.get_label())) <= NARROW for handle in handles) else 2
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=min(columns, len(handles)),
        columnspacing=1.4,
        handlelength=2.6 if lines else 1.2,
    )


def mark(marker: str, label: str, colour: str = NEUTRAL, *, filled: bool = True, line: Dash = "none") -> Line2D:
    """A legend entry."""
    face = colour if filled else "white"
    return Line2D([], [], color=colour, marker=marker, linestyle=line, label=label, markerfacecolor=face)


def log_axis(axes: Axes, which: Literal["x", "y"], *, at: Iterable[float] | None = None) -> None:
    """Make an axis logarithmic, with ticks such as 100 instead of powers of ten. ``at`` fixes their positions."""
    axis: Axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low) if low > 0 else 1.0
    if at is not None:
        axis.set_major_locator(FixedLocator(sorted(at)))
    elif decades < 0.7:
        axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))
    elif decades < 1.3:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    elif decades < 2.7:
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=12))
    else:
        axis.set_major_locator(LogLocator(numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}" if value < 1e-3 else f"{value:,.10g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def title_size(names: Iterable[str]) -> float:
    """The size in points of the titles of three panels next to each other."""
    return 9.5 if max(map(len, names)) <= 17 else 7.5


def shortened(name: str, width: int = 34) -> str:
    """``name`` in at most ``width`` characters; after a space if it begins with ``_``, which hides legend entries."""
    text = textwrap.shorten(name, width, placeholder="…") if len(name) > width else name
    text = name[: width - 1] + "…" if len(text) > width or (name and not text) else text
    return f" {text}" if text.startswith("_") else text


def dodge(index: int, count: int, room: float = 0.7) -> float:
    """The offset of mark ``index`` of ``count`` from the centre of a category of width 1."""
    return 0.0 if count < 2 else room * (index / (count - 1) - 0.5)


def joined(parts: Iterable[str], most: int = 12) -> str:
    """The first ``most`` of ``parts`` as text for an alt text, with the number of the others."""
    parts = list(parts)
    more = f"; and {len(parts) - most} more" if len(parts) > most else ""
    return "; ".join(parts[:most]) + more + "."


ET.register_namespace("", SVG)


ET.register_namespace("xlink", XLINK)


def svg_text(picture: Picture) -> str:
    """``picture`` as one ``<svg>`` element that scales to its container and includes its title and alt text."""
    buffer = io.BytesIO()
    with settings():
        picture.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ET.fromstring(buffer.getvalue())  # the parser drops comments
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    targets = {one for element in root.iter() for value in element.attrib.values() for one in TARGET.findall(value)}
    for element in root.iter():
        if element.get("id") not in targets:
            element.attrib.pop("id", None)
        _renamed(element, picture.name)
        element.text, element.tail = (text if text and text.strip() else None for text in (element.text, element.tail))
    del root.attrib["width"], root.attrib["height"]
    title, description = ET.Element(f"{{{SVG}}}title"), ET.Element(f"{{{SVG}}}desc")
    title.text, description.text = picture.title, picture.alt
    title.set("id", f"{picture.name}-title")
    description.set("id", f"{picture.name}-desc")
    root.insert(0, description)
    root.insert(0, title)
    root.set("role", "img")
    root.set("aria-labelledby", f"{picture.name}-title {picture.name}-desc")
    return ET.tostring(root, encoding="unicode").replace(*FONTS)


def _renamed(element: ET.Element, name: str) -> None:
    """Prefix an element's id, and the ids it refers to, with the picture's name."""
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif key in ("href", f"{{{XLINK}}}href") and value.startswith("#"):
            element.set(key, f"#{name}-{value[1:]}")
        elif "url(#" in value:
            element.set(key, REFERENCE.sub(rf"url(#{name}-\1)", value))

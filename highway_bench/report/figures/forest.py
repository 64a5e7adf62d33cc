"""Held-out loss minus pre-norm's with its interval, a row per connection: a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from highway_bench.frames.results import Results
from highway_bench.report.choice.columns import BITS, EQUAL_BITS, REFERENCE
from highway_bench.report.choice.ranking import depths_of, kinds_of, ranking
from highway_bench.report.choice.table import wide_table
from highway_bench.report.figures.base import Panel, register_figure
from highway_bench.report.figures.drawing import point_with_interval
from highway_bench.report.format import signed
from highway_bench.report.style import NEUTRAL, Style, styles


@register_figure(
    "difference",
    title="held-out loss minus pre-norm's",
    caption="Paired by seed, with 95 % intervals corrected by Holm for all of a panel. Left of 0 is better.",
    needs="pre-norm and another connection that train",
    order=4,
    lines=None,
)
def difference(results: Results) -> list[Panel]:
    """On text every depth, and the deepest of the other kinds, at which pre-norm and another connection train."""
    table = wide_table(results)
    panels = []
    for kind in kinds_of(table):
        for depth in reversed(depths_of(table, kind)):
            rows = [row for row in ranking(table, kind, depth).trained if row["held_out_difference"] is not None]
            if not rows:
                continue
            rows = sorted(rows, key=lambda row: row["held_out_difference"])
            style = styles([row["connection"] for row in rows], results.about)
            unit = "bits" if kind.data in BITS else "nat"
            described = [f"{row['connection']}: {signed(row['held_out_difference'], '+.3g')} {unit}" for row in rows]
            draw = partial(draw_difference, rows=rows, styles=style, unit=unit)
            panels.append(Panel(f"{kind.label}, {depth} layers", draw, style, described))
            if kind.data not in BITS:
                break
    return panels


def draw_difference(
    axes: Axes, rows: Sequence[Mapping[str, Any]], styles: Mapping[str, Style], unit: str = "nat"
) -> None:
    """Draw a row per connection: ``rows`` are those of the wide table with a difference to pre-norm, of one depth."""
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    if unit == "bits":
        axes.axvspan(-EQUAL_BITS, EQUAL_BITS, color="#eeeeee", zorder=0)
    for height, row in enumerate(rows):
        bounds = (row["held_out_difference_low"], row["held_out_difference_high"])
        point_with_interval(axes, row["held_out_difference"], height, styles[row["connection"]], bounds, along="x")
    axes.set_yticks(range(len(rows)), [row["connection"] for row in rows], fontsize=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"minus {REFERENCE}'s, {unit}")

"""Quality against cost: held-out loss over the time of a step, one panel per kind of layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from highway_bench.frames.results import Results
from highway_bench.report.choice.columns import BITS
from highway_bench.report.choice.ranking import depths_of, kinds_of, ranking
from highway_bench.report.choice.table import wide_table
from highway_bench.report.figures.base import Panel, log_axis, register_figure
from highway_bench.report.figures.drawing import point_with_interval
from highway_bench.report.format import three
from highway_bench.report.style import NEUTRAL, Style, styles

WideRows = Sequence[Mapping[str, Any]]


@register_figure(
    "quality-against-time",
    title="held-out loss against step time",
    caption="The deepest depth with timed steps. Lower left is better; grey: what no faster connection beats. Bars: "
    "95 % intervals over seeds (losses) and processes (ratios).",
    needs="connections that train and whose steps were timed in turn",
    order=5,
    lines=False,
)
def quality_against_time(results: Results) -> list[Panel]:
    """One panel per kind of layer, at the deepest depth at which several connections train and were timed."""
    table = wide_table(results)
    panels = []
    for kind in kinds_of(table):
        for depth in reversed(depths_of(table, kind)):
            rows = [row for row in ranking(table, kind, depth).trained if row["step_ratio"] is not None]
            if len(rows) > 1:
                style = styles([row["connection"] for row in rows], results.about)
                unit = "bits" if kind.data in BITS else "nat"
                described = [
                    f"{row['connection']}: {three(row['held_out'])} {unit}, {three(row['step_ratio'])} × step"
                    for row in rows
                ]
                draw = partial(draw_quality, rows=rows, styles=style, unit=unit)
                panels.append(Panel(f"{kind.label}, {depth} layers", draw, style, described))
                break
    return panels


def front(rows: WideRows) -> WideRows:
    """The rows with a lower held-out loss than every faster one, by their step time."""
    best: list[Mapping[str, Any]] = []
    for row in sorted(rows, key=lambda one: (one["step_ratio"], one["held_out"])):
        if not best or row["held_out"] < best[-1]["held_out"]:
            best.append(row)
    return best


def draw_quality(axes: Axes, rows: WideRows, styles: Mapping[str, Style], unit: str = "nat") -> None:
    """Draw one mark per connection and the front: ``rows`` are those of the wide table that train, of one depth."""
    for row in rows:
        style = styles[row["connection"]]
        at = row["step_ratio"], row["held_out"]
        if row["step_ratio_low"] is not None:
            axes.hlines(at[1], row["step_ratio_low"], row["step_ratio_high"], color=style.colour, alpha=0.45)
        bounds = (row["held_out_low"], row["held_out_high"]) if row["held_out_low"] is not None else None
        point_with_interval(axes, *at, style, bounds)
    best = front(rows)
    path = [row["step_ratio"] for row in best], [row["held_out"] for row in best]
    axes.step(*path, where="post", color=NEUTRAL, linewidth=0.9, zorder=1)
    log_axis(axes, "x")
    log_axis(axes, "y")
    axes.set_xlabel("training step ÷ pre-norm's (log)")
    axes.set_ylabel(f"held-out loss, {unit} (log)")

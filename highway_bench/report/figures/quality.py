"""Held-out loss of the connections that train: minus pre-norm's, as a forest plot, and against the time of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from highway_bench.frames.results import Results
from highway_bench.report.choice.columns import BITS, EQUAL_BITS, REFERENCE
from highway_bench.report.choice.ranking import depths_of, kinds_of, ranking
from highway_bench.report.choice.table import wide_table
from highway_bench.report.figures.base import Panel, log_axis, register_figure
from highway_bench.report.figures.drawing import point_with_interval
from highway_bench.report.format import signed, three
from highway_bench.report.style import NEUTRAL, Style, styles

WideRows = Sequence[Mapping[str, Any]]


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

    def words(row: Mapping[str, Any], unit: str) -> str:
        return f"{row['connection']}: {signed(row['held_out_difference'], '+.3g')} {unit}"

    by = "held_out_difference"
    return _panels(results, draw_difference, words, needs=by, order=by, every_depth_of=BITS)


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

    def words(row: Mapping[str, Any], unit: str) -> str:
        return f"{row['connection']}: {three(row['held_out'])} {unit}, {three(row['step_ratio'])} × step"

    return _panels(results, draw_quality, words, needs="step_ratio", order="held_out", least=2)


def _panels(
    results: Results,
    draw: Callable[..., None],
    words: Callable[[Mapping[str, Any], str], str],
    *,
    needs: str,
    order: str,
    least: int = 1,
    every_depth_of: Sequence[str] = (),
) -> list[Panel]:
    """A panel per kind of layer at the deepest depth at which ``least`` connections train and have the column
    ``needs``, and at every such depth of some data sets; in the order of another column."""
    table, panels = wide_table(results), []
    for kind in kinds_of(table):
        for depth in reversed(depths_of(table, kind)):
            rows = [row for row in ranking(table, kind, depth).trained if row[needs] is not None]
            if len(rows) < least:
                continue
            rows = sorted(rows, key=lambda row: row[order])
            style = styles([row["connection"] for row in rows], results.about)
            unit = "bits" if kind.data in BITS else "nat"
            drawn = partial(draw, rows=rows, styles=style, unit=unit)
            panels.append(Panel(f"{kind.label}, {depth} layers", drawn, style, [words(row, unit) for row in rows]))
            if kind.data not in every_depth_of:
                break
    return panels


def draw_difference(axes: Axes, rows: WideRows, styles: Mapping[str, Style], unit: str) -> None:
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


def front(rows: WideRows) -> WideRows:
    """The rows with a lower held-out loss than every faster one, by their step time."""
    best: list[Mapping[str, Any]] = []
    for row in sorted(rows, key=lambda one: (one["step_ratio"], one["held_out"])):
        if not best or row["held_out"] < best[-1]["held_out"]:
            best.append(row)
    return best


def draw_quality(axes: Axes, rows: WideRows, styles: Mapping[str, Style], unit: str) -> None:
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

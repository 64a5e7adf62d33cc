"""Share of successful seeds against depth: one panel per connection, with Wilson bands."""

from __future__ import annotations

from functools import partial

import pandas as pd
from matplotlib.axes import Axes

from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.report.figures.base import Panel, log_axis, register_figure
from highway_bench.report.figures.drawing import intervals, line_with_band
from highway_bench.report.labels import family_name, title_of
from highway_bench.report.style import NEUTRAL, Style, of_blocks, styles
from highway_bench.success.ladder import TRAINABLE


@register_figure(
    "success-by-depth",
    title="share of seeds that succeed by depth",
    caption="Numbers below: seeds that succeed, of those run; bands: Wilson 95 % intervals; dotted: "
    f"{TRAINABLE:.0%} of seeds, the limit for “trains”.",
    needs="the trainability task with verdicts",
    order=10,
    columns=3,
    height=1.6,
    shared=True,
    lines=None,
)
def success_rate(results: Results) -> list[Panel]:
    """One sheet per contest, one panel per connection."""
    style = styles(results.of_task("trainability")["label"], results.about)
    contests = results.contests()
    every = [contest for contest, _ in contests]
    panels = []
    for contest, part in contests:
        ran = part[part["n"] > 0]
        for block, own in of_blocks(style, ran["block"]).items():
            rungs = ran[ran["block"] == block].sort_values("depth")
            described = [f"depth {cell['depth']}: {cell['k']} of {cell['n']}" for cell in rows_of(rungs)]
            draw = partial(draw_success, rungs=rungs, style=own)
            panels.append(Panel(block, draw, {}, described, title_of(contest, every, family_name)))
    return panels


def draw_success(axes: Axes, rungs: pd.DataFrame, style: Style) -> None:
    """Draw the share of successful seeds of one connection: ``rungs`` are its rows of ``Results.trainability``."""
    depth, low, high = rungs["depth"], rungs["rate_low"], rungs["rate_high"]
    line_with_band(axes, depth, rungs["k"] / rungs["n"], style, low, high, clip_on=False)
    intervals(axes, depth, low, high, style, width=1.0)
    axes.axhline(TRAINABLE, color=NEUTRAL, linewidth=0.8, linestyle=":")
    for at, k, n in zip(depth, rungs["k"], rungs["n"], strict=True):
        axes.text(at, -0.14, f"{k}/{n}", ha="center", va="top", fontsize=6.5, rotation=90)
    axes.set_ylim(-0.6, 1.06)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    left, right = axes.get_xlim() if axes.get_xscale() == "log" else (depth.min(), depth.max())
    axes.set_xlim(min(left, depth.min() / 1.8), max(right, depth.max() * 1.5))
    log_axis(axes, "x", at=sorted(set(depth)))
    axes.tick_params(axis="x", labelrotation=90)
    axes.set_xlabel("depth, layers (log)")
    axes.set_ylabel("share of seeds")

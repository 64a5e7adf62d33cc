"""By depth: the share of seeds that succeed, with Wilson bands, and the final training loss, on log axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from highway_bench.frames.results import Results
from highway_bench.frames.rows import CONTEST, groups, rows_of
from highway_bench.report.figures.base import Panel, dodge, log_axis, register_figure
from highway_bench.report.figures.drawing import (
    EDGE,
    intervals,
    line_with_band,
    reference_losses,
    seed_dots,
    some_diverged,
)
from highway_bench.report.format import three
from highway_bench.report.labels import title_of
from highway_bench.report.style import NEUTRAL, Style, of_blocks, styles
from highway_bench.success.ladder import TRAINABLE

HIGHEST: Final = 3.0
"""The axis ends at this multiple of the loss of a constant prediction."""
DOTTED: Final = 8
"""Of more connections, single seeds cover each other."""
SPREAD: Final = 1.1
"""From the first to the last mark of a depth, so that bars do not cover each other."""


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
            panels.append(Panel(block, draw, {}, described, title_of(contest, every)))
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
    axes.set_yticks([0, 0.5, TRAINABLE], ["0", "0.5", f"{TRAINABLE:g}"])
    left, right = axes.get_xlim() if axes.get_xscale() == "log" else (depth.min(), depth.max())
    axes.set_xlim(min(left, depth.min() / 1.8), max(right, depth.max() * 1.5))
    log_axis(axes, "x", at=sorted(set(depth)))
    axes.tick_params(axis="x", labelrotation=90)
    axes.set_xlabel("depth, layers (log)")
    axes.set_ylabel("share of seeds")


@register_figure(
    "loss-by-depth",
    title="final training loss by depth",
    caption="Geometric means over seeds, bars: 95 % t intervals of the logarithm; dots: seeds. "
    "Crosses: diverged seeds, with their number. Triangles: losses above the axis. Dotted: the loss of a constant "
    "prediction (chance) and the threshold of success.",
    needs="the trainability task with verdicts",
    order=30,
)
def loss_by_depth(results: Results) -> list[Panel]:
    """One panel per contest."""
    style = styles(results.of_task("trainability")["label"], results.about)
    contests = results.contests()
    every = [contest for contest, _ in contests]
    single = list(groups(results.training_runs(), CONTEST))
    panels = []
    for contest, part in contests:
        rungs = part[part["final_loss"].notna()]
        if not np.isfinite(rungs["final_loss"]).any() or (len(contests) > 1 and len(set(rungs["block"])) == 1):
            continue  # a connection alone is compared with none
        own = of_blocks(style, rungs["block"])
        draw = partial(
            draw_loss_by_depth,
            rungs=rungs,
            styles=own,
            runs=next(runs for other, runs in single if other == contest),
            chance=results.about.chance_loss(contest["dataset"]),
        )
        described = [
            f"{cell['block']} at depth {cell['depth']}: "
            + (f"{three(cell['final_loss'])} nat" if np.isfinite(cell["final_loss"]) else "diverged")
            for cell in rows_of(rungs)
        ]
        panels.append(Panel(title_of(contest, every), draw, own, described))
    return panels


def draw_loss_by_depth(
    axes: Axes, rungs: pd.DataFrame, styles: Mapping[str, Style], runs: pd.DataFrame, chance: float = math.nan
) -> None:
    """Draw one line per connection: ``rungs`` are a contest's rows of ``Results.trainability``, ``runs`` its rows of
    ``Results.training_runs``, and ``chance`` is the loss of the best constant prediction, in nat."""
    threshold = rungs["success_loss"].max()
    for index, (block, style) in enumerate(styles.items()):
        own = rungs[rungs["block"] == block].sort_values("depth")
        at = own["depth"] * SPREAD ** dodge(index, len(styles), min(1.0, 0.15 * (len(styles) - 1)))
        finite = np.isfinite(own["final_loss"])
        line_with_band(axes, at.where(finite), own["final_loss"].where(finite), style)
        intervals(axes, at, own["loss_low"], own["loss_high"], style)
        for x, depth in zip(at, own["depth"], strict=True) if len(styles) <= DOTTED else ():
            seed_dots(axes, x, runs.loc[runs["block"].eq(block) & runs["depth"].eq(depth), "final_loss"], style)
        some_diverged(axes, list(at), list(own["diverged"]), style)
        above = at[finite & own["final_loss"].gt(HIGHEST * chance)]
        axes.plot(above, [EDGE] * len(above), "^", color=style.colour, transform=axes.get_xaxis_transform())
    reference_losses(axes, chance, 0.0 if threshold > HIGHEST * chance else threshold)
    log_axis(axes, "y")
    axes.set_ylim(top=min(axes.get_ylim()[1], HIGHEST * chance) if chance > 0 else None)
    log_axis(axes, "y")
    axes.set_xlim(rungs["depth"].min() / 1.3, rungs["depth"].max() * 1.3)
    log_axis(axes, "x", at=sorted(set(rungs["depth"])))
    axes.tick_params(axis="x", labelrotation=90 if rungs["depth"].nunique() > 5 else 0)
    axes.set_xlabel("depth, layers (log)")
    axes.set_ylabel("training loss, nat (log)")

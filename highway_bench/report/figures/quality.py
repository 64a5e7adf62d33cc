"""Quality against cost: final loss over step time at one depth per contest, with the memory as the size of a mark."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    legend,
    log_axis,
    mark,
    panels,
    register_figure,
    settings,
    shortened,
)
from highway_bench.report.figures.drawing import crosses, point_with_interval, reference_losses, some_diverged
from highway_bench.report.format import listed, quantity, three
from highway_bench.report.labels import family_name, step_text, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups, rows_of
from highway_bench.report.style import NEUTRAL, Style, of_blocks, styles
from highway_bench.report.tables.summary import common_depth
from highway_bench.success.ladder import TRAINS

OWN_STEPS: Final = "training run's"
"""The phase of step times that are those of the training runs themselves."""
LEAST_MARK, MOST_MARK = 4.0, 11.0
"""Diameters of marks, in points: of no saved bytes and of the most."""

Panel = tuple[dict[str, Any], int, str, pd.DataFrame]
"""A contest, its depth, the phase of its step times, and one row per block."""


@register_figure("quality-against-time", title="quality against step time", order=5)
def quality_against_time(results: Results) -> list[Picture]:
    """One picture with one panel per contest, one mark per block: lower left is better.

    Contests in which nothing trains are left out, unless nothing trains in any."""
    drawn = [panel for contest, part in results.contests() if (panel := _panel(contest, part, results))]
    drawn = [panel for panel in drawn if len(pareto_front(panel[-1]))] or drawn
    if not drawn:
        raise NothingToShow("quality against step time needs the trainability task with verdicts for several blocks")
    every = [contest for contest, _ in results.contests()]
    names = [title_of(contest, every, family_name) for contest, *_ in drawn]
    style = styles(results.of_task("trainability")["label"], results.about)
    return [_picture(drawn, names, of_blocks(style, pd.concat([points for *_, points in drawn])["block"]), results)]


def pareto_front(points: pd.DataFrame) -> pd.DataFrame:
    """The rows of blocks that train and have a lower loss than every faster one, by their step time."""
    able = points[points["verdict"].eq(TRAINS) & np.isfinite(points["final_loss"])]
    able = able.sort_values(["seconds", "final_loss"], kind="stable")
    front: pd.DataFrame = able[able["final_loss"] < able["final_loss"].cummin().shift(fill_value=math.inf)]
    return front


def _panel(contest: dict[str, Any], part: pd.DataFrame, results: Results) -> Panel | None:
    """The deepest depth at which a block trains and steps of several blocks were timed; without such a depth, the
    deepest at which a block trains, with the step times of the training runs. None with a single block."""
    costs = next(own for setting, own in groups(results.costs(), CONTEST) if setting == contest)
    rungs = part[part["final_loss"].notna()]
    rungs = rungs.merge(costs[["block", "depth", "step_time", "bytes_per_layer"]], on=["block", "depth"])
    timed = rungs[rungs["step_time"].gt(0)].assign(seconds=rungs["step_time"])
    for depth in sorted(timed.loc[timed["verdict"] == TRAINS, "depth"].unique(), reverse=True):
        points = timed[timed["depth"] == depth]
        if len(points) > 1:
            return contest, int(depth), results.phase(), points
    depth = common_depth(part)
    points = rungs[rungs["depth"].eq(depth) & rungs["step_seconds"].gt(0)]
    points = points.assign(seconds=points["step_seconds"])
    comparable = len(points) > 1 and np.isfinite(points["final_loss"]).any()
    return (contest, depth, OWN_STEPS, points) if comparable else None


def _picture(drawn: list[Panel], names: list[str], style: dict[str, Style], results: Results) -> Picture:
    alt: list[str] = []
    failed = diverged = sized = False
    fronts: dict[str, list[str]] = {}
    unit = results.trainability().attrs["units"]["final_loss"]
    with settings():
        figure, axes = panels(len(drawn), 1 if len(drawn) < 3 else 2, 2.9 if len(drawn) < 3 else 2.4)
        for panel, name, (contest, depth, phase, points) in zip(axes, names, drawn, strict=True):
            alt += [f"{name}, {text}" for text in _marks(panel, points, style)]
            front = pareto_front(points)
            panel.step(front["seconds"], front["final_loss"], where="post", color=NEUTRAL, linewidth=0.9, zorder=1)
            fronts[f"{name}, depth {depth:,}"] = list(front["block"])
            reference_losses(panel, results.about.chance_loss(contest["dataset"]), points["success_loss"].max())
            log_axis(panel, "y")
            panel.margins(x=0.15)
            log_axis(panel, "x", "s")
            panel.set_xlabel(f"{step_text(phase)}, s (log)")
            panel.set_ylabel(f"final training loss, {unit} (log)")
            panel.set_title(shortened(f"{name}, depth {depth:,}", 46 if len(drawn) < 3 else 26), loc="left")
            failed |= bool((points["verdict"] != TRAINS).any())
            diverged |= bool(np.isinf(points["final_loss"]).any() or points["diverged"].gt(0).any())
            sized |= bool(points["bytes_per_layer"].gt(0).any())
        title = _title(fronts)
        head(figure, title)
        extra = [mark("o", "no verdict “trains”", filled=False)] if failed else []
        extra += [mark("x", "diverged (a number: so many seeds)")] if diverged else []
        legend(figure, style, extra)
    caption = (
        "Lower left is better. Grey steps: the Pareto front, connections that no faster one that trains beats. Dotted: "
        "the loss of a constant prediction (chance) and the threshold of success. Bars: 95 % intervals over seeds."
    )
    caption += " The larger a mark in its panel, the more bytes are saved per layer." if sized else ""
    return Picture("quality-against-time", title, f"Loss against step time. {joined(alt, 60)}", caption, figure)


def _marks(panel: Axes, points: pd.DataFrame, style: dict[str, Style]) -> list[str]:
    """Draw one mark per block and describe it."""
    described = []
    sizes = points["bytes_per_layer"]
    for cell, size in zip(rows_of(points), sizes / sizes.max(), strict=True):
        own, bounds = style[cell["block"]], (cell["loss_low"], cell["loss_high"])
        diameter = LEAST_MARK + (MOST_MARK - LEAST_MARK) * math.sqrt(size) if size > 0 else 7.0
        if np.isfinite(cell["final_loss"]):
            trains = cell["verdict"] == TRAINS
            point_with_interval(
                panel, cell["seconds"], cell["final_loss"], own, bounds, filled=trains, markersize=diameter
            )
            some_diverged(panel, [cell["seconds"]], [int(cell["diverged"])], own)
        else:
            crosses(panel, cell["seconds"], own, edge="top", markersize=7)
        loss = f"loss {three(cell['final_loss'])}" if np.isfinite(cell["final_loss"]) else "diverged"
        memory = f", {quantity(cell['bytes_per_layer'], 'B')} per layer" if size > 0 else ""
        described.append(f"{cell['block']}: {loss}, {quantity(cell['seconds'], 's')} a step{memory}")
    return described


def _title(fronts: dict[str, list[str]]) -> str:
    """The connections on each front; of many fronts, the connections on most of them."""
    if len(fronts) <= 3:
        named = [f"{name}: {listed(front) if front else 'nothing trains'}" for name, front in fronts.items()]
        return f"On the front of loss and step time: {'; '.join(named)}"
    counts = Counter(block for front in fronts.values() for block in front)
    most = max(counts.values(), default=0)
    named = [block for block, count in counts.items() if count == most]
    what = f"on the front of loss and step time in {most} of {len(fronts)} panels"
    return f"{listed(named)} {'are' if len(named) > 1 else 'is'} {what}" if named else "Nothing trains"

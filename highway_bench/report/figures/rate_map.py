"""Outcomes of learning-rate trials by depth and rate, one panel per connection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes

from highway_bench.cell import canonical
from highway_bench.frames.results import Results
from highway_bench.frames.rows import CONTEST, groups, recipe_of, rows_of
from highway_bench.report.figures.base import Panel, log_axis, register_figure
from highway_bench.report.format import three
from highway_bench.report.labels import title_of
from highway_bench.report.style import NEUTRAL
from highway_bench.results.schema import OUTCOMES, Status

TRAINED: Final = "trained"
MARKS: Final = {
    TRAINED: ("o", "#0072B2"),
    "stalled": ("_", "#777777"),
    "diverged": ("x", "#D55E00"),
    "failed": ("|", NEUTRAL),
    "not tried": (".", "#BBBBBB"),
}
"""The marker and colour of a trial, by what became of it."""
USED: Final = "rate of the judged runs"


@register_figure(
    "rate-map",
    title="trials by depth and learning rate",
    caption="One mark per trial, which serves only to choose the rate. Ring: the rate of the judged runs.",
    needs="a rate search's trials",
    order=20,
    columns=3,
    height=1.5,
    shared=True,
    lines=None,
    marks={outcome: marker for outcome, (marker, _) in MARKS.items()},
)
def rate_map(results: Results) -> list[Panel]:
    """One sheet per search, one panel per connection."""
    tried = results.trials()
    tried = tried.assign(rate=[_rate(cell) for cell in rows_of(tried)], recipe=tried["recipe"].map(_searched))
    tried = tried[tried["rate"] > 0]
    tried = tried.assign(outcome=[_outcome(cell) for cell in rows_of(tried)])
    searches = list(groups(tried, CONTEST))
    panels = []
    for contest, part in searches:
        judged = [rungs for other, rungs in results.contests() if _alike(other, contest)]
        sheet = title_of(contest, [other for other, _ in searches])
        depths = sorted(set(part["depth"]))
        for block in results.about.block_order(part["block"]):
            own = part[part["block"] == block]
            used = [rungs[rungs["block"].eq(block) & rungs["depth"].isin(depths)] for rungs in judged]
            described = [
                f"depth {depth}: trains at {', '.join(map(three, sorted(set(rates)))) or 'no rate tried'}"
                for depth, rates in ((at, own.loc[own["depth"].eq(at) & own["outcome"].eq(TRAINED), "rate"])
                                     for at in sorted(set(own["depth"])))
            ]  # fmt: skip
            draw = partial(draw_rates, trials=own, judged=pd.concat(used) if used else own.iloc[:0], depths=depths)
            panels.append(Panel(block, draw, {}, described, sheet))
    return panels


def draw_rates(axes: Axes, trials: pd.DataFrame, judged: pd.DataFrame, depths: Sequence[int]) -> None:
    """Draw the trials of one connection, and rings around the rates of its ``judged`` runs, on rows of ``depths``.

    ``trials`` have the columns ``depth``, ``rate`` and ``outcome``, a key of ``MARKS``."""
    rows = {depth: row for row, depth in enumerate(depths)}
    for outcome, (marker, colour) in MARKS.items():
        cells = trials[trials["outcome"] == outcome]
        if len(cells):  # an empty line that is not clipped disturbs the layout
            axes.plot(cells["rate"], cells["depth"].map(rows), marker, color=colour, clip_on=False)
    judged = judged[judged["rate"] > 0]
    if len(judged):
        ring: dict[str, Any] = {"markersize": 10, "markerfacecolor": "none", "color": "black", "clip_on": False}
        axes.plot(judged["rate"], judged["depth"].map(rows), "o", label=USED, **ring)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(list(rows.values()), [str(depth) for depth in rows])
    low, high = trials["rate"].min(), trials["rate"].max()
    left, right = axes.get_xlim() if axes.get_xscale() == "log" else (low, high)
    axes.set_xlim(min(left, low / 2), max(right, high * 2))
    log_axis(axes, "x", at=[10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)))])
    axes.set_xlabel("learning rate (log)")
    axes.set_ylabel("depth, layers")


def _searched(recipe: object) -> str:
    """A recipe without its rates: that of a search and of the runs at the chosen rate."""
    return canonical({name: value for name, value in recipe_of(recipe).items() if name not in ("rate", "rates")})


def _alike(contest: dict[str, Any], search: dict[str, Any]) -> bool:
    return contest | {"recipe": _searched(contest["recipe"])} == search


def _rate(cell: dict[str, Any]) -> float:
    """The rate of a trial, from its metric or its recipe; NaN of a crashed one."""
    if cell["rate"] > 0:
        return float(cell["rate"])
    rate = recipe_of(cell["recipe"]).get("rate")
    return float(rate) if isinstance(rate, (int, float)) else math.nan


def _outcome(cell: dict[str, Any]) -> str:
    if cell["status"] == Status.SKIPPED:  # deeper than a depth at which no seed trained
        return "not tried"
    if cell["status"] not in OUTCOMES:
        return "failed"
    if cell["status"] == Status.DIVERGED:
        return "diverged"
    return TRAINED if cell["success"] == 1 else "stalled"

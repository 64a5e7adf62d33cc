"""Outcomes of learning-rate trials by depth and rate, one panel per block."""

from __future__ import annotations

import math
from typing import Any, Final

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    log_axis,
    mark,
    panels,
    register_figure,
    settings,
    shortened,
    title_size,
)
from highway_bench.report.format import listed, three
from highway_bench.report.labels import contest_text, data_name, family_name, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups, recipe_of, rows_of
from highway_bench.report.style import NEUTRAL
from highway_bench.results.schema import OUTCOMES, Status

TRAINED: Final = "trained"
MARKS: Final = {
    TRAINED: ("o", "#0072B2", True),
    "stalled": ("o", "#999999", False),
    "diverged": ("x", "#D55E00", True),
    "failed": ("|", NEUTRAL, True),
    "not tried": (".", "#BBBBBB", True),
}


@register_figure("rate-map", title="depth × rate map", order=20)
def rate_map(results: Results) -> list[Picture]:
    """One picture per contest: one mark per trial at its depth and rate, and a ring around the rate of the runs."""
    tried = results.trials()
    if tried.empty:
        raise NothingToShow("the depth × rate map needs a rate search's trials")
    ladders = results.contests()
    searches = list(groups(tried.assign(tried=tried["recipe"], recipe=tried["recipe"].map(_searched)), CONTEST))
    pictures: list[Picture] = []
    for contest, part in searches:
        counted = [rungs for ladder, rungs in ladders if ladder | {"recipe": _searched(ladder["recipe"])} == contest]
        names = [title_of(contest, [other for other, _ in searches], name) for name in (family_name, data_name)]
        pictures.append(_picture(f"rates-{len(pictures) + 1}", contest, part, counted, results, names))
    return pictures


def _picture(
    name: str,
    contest: dict[str, Any],
    part: pd.DataFrame,
    counted: list[pd.DataFrame],
    results: Results,
    names: list[str],
) -> Picture:
    part = part.assign(rate=[_rate(cell) for cell in rows_of(part)])
    part = part[part["rate"] > 0].assign(outcome=[_outcome(cell) for cell in rows_of(part[part["rate"] > 0])])
    blocks = results.about.block_order(part["block"])
    depths = sorted(part["depth"].unique())
    alt: list[str] = []
    with settings():
        figure, axes = panels(len(blocks), 3, 1.5, sharex=True, sharey=True)
        for panel, block in zip(axes, blocks, strict=True):
            here = part[part["block"] == block]
            for outcome, (marker, colour, filled) in MARKS.items():
                cells = here[here["outcome"] == outcome]
                if cells.empty:  # an empty line that is not clipped disturbs the layout
                    continue
                panel.plot(
                    cells["rate"],
                    [depths.index(depth) for depth in cells["depth"]],
                    marker=marker,
                    color=colour,
                    markerfacecolor=colour if filled else "white",
                    linestyle="none",
                    clip_on=False,
                )
            for rungs in counted:
                used = rungs[(rungs["block"] == block) & rungs["rate"].gt(0) & rungs["depth"].isin(depths)]
                if used.empty:
                    continue
                panel.plot(
                    used["rate"],
                    [depths.index(depth) for depth in used["depth"]],
                    marker="o",
                    markersize=10,
                    color="black",
                    markerfacecolor="none",
                    linestyle="none",
                    clip_on=False,
                )
            panel.set_title(shortened(block, 26), loc="left", fontsize=title_size(blocks))
            for depth, rungs in here.groupby("depth"):
                rates = sorted(rungs.loc[rungs["outcome"] == TRAINED, "rate"].unique())
                alt.append(f"{block} at depth {depth} trains at {', '.join(map(three, rates)) or 'no rate tried'}")
        for panel in axes:
            panel.set_ylim(len(depths) - 0.5, -0.5)
            panel.set_yticks(range(len(depths)), [str(depth) for depth in depths])
            panel.set_xlim(part["rate"].min() / 2, part["rate"].max() * 2)
            log_axis(panel, "x", at=_decades(part["rate"].min(), part["rate"].max()))
        for panel in axes[-3:]:
            panel.set_xlabel("learning rate (log)")
        figure.supylabel("depth, layers", fontsize=9)
        title = _finding(part, results, *names)
        head(figure, title)

        handles = [
            mark(marker, outcome, colour, filled=filled)
            for outcome, (marker, colour, filled) in MARKS.items()
            if (part["outcome"] == outcome).any()
        ]
        ring = mark("o", "rate of the judged runs", "black", filled=False)
        ring.set_markersize(9)
        figure.legend(handles=[*handles, ring], loc="outside lower left", ncols=3, columnspacing=1.4)
    caption = f"{contest_text(contest)}. One mark per trial, {len(part)} trials, which serve only to choose the rate."
    return Picture(name, title, f"Map of trials by depth and learning rate. {joined(alt, 60)}", caption, figure)


def _decades(low: float, high: float) -> list[float]:
    """The powers of ten near or between ``low`` and ``high``, every other one of more than three; these two if there
    are fewer than two such powers."""
    powers = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    inside = [power for power in powers if low / 1.5 <= power <= high * 1.5]
    if len(inside) < 2:
        return [low, high]
    return inside[:: 2 if len(inside) > 3 else 1]


def _searched(recipe: object) -> str:
    """A recipe without its rates, which is the same for a search and for the runs at the chosen rate."""
    return canonical({name: value for name, value in recipe_of(recipe).items() if name not in ("rate", "rates")})


def _rate(cell: dict[str, Any]) -> float:
    """The rate of a trial, from its metric or else from its recipe; NaN if neither has it (a crashed trial)."""
    if cell["rate"] > 0:
        return float(cell["rate"])
    rate = recipe_of(cell["tried"]).get("rate")
    return float(rate) if isinstance(rate, (int, float)) else float("nan")


def _outcome(cell: dict[str, Any]) -> str:
    if cell["status"] == Status.SKIPPED:  # deeper than a depth at which no seed trained
        return "not tried"
    if cell["status"] not in OUTCOMES:
        return "failed"
    if cell["status"] == Status.DIVERGED:
        return "diverged"
    return TRAINED if cell["success"] == 1 else "stalled"


def _finding(part: pd.DataFrame, results: Results, family: str, name: str) -> str:
    trained = part[part["outcome"] == TRAINED]
    if trained.empty:
        return f"{name}: no trial reached the threshold"
    deepest = int(trained["depth"].max())
    shares = (
        trained[trained["depth"] == deepest].groupby("block").size()
        / part[part["depth"] == deepest].groupby("block").size()
    )
    shares = shares.fillna(0).sort_values(ascending=False, kind="stable")
    level = [block for block in results.about.block_order(shares.index) if shares[block] == shares.iloc[0]]
    counts = {
        block: [int((cells["depth"].eq(deepest) & cells["block"].eq(block)).sum()) for cells in (trained, part)]
        for block in level
    }
    named = listed([f"{block} ({k} of {n})" for block, (k, n) in counts.items()])
    verb = "train" if len(level) > 1 else "trains"
    return f"{family}: at depth {deepest:,} {named} {verb} in the largest share of trials"

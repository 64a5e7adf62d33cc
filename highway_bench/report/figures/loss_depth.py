"""Final training loss against depth, on log axes."""

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
    dodge,
    head,
    joined,
    legend,
    log_axis,
    mark,
    panels,
    register_figure,
    settings,
)
from highway_bench.report.figures.drawing import (
    DOTS_BELOW,
    intervals,
    line_with_band,
    reference_losses,
    seed_dots,
)
from highway_bench.report.format import seeds_text, three
from highway_bench.report.labels import contest_text, family_name, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups, rows_of
from highway_bench.report.style import NEUTRAL, Style, of_blocks, styles

HIGHEST: Final = 3.0  # times the loss of a constant prediction, or a threshold above it, where the axis ends
MOST_ROOM: Final = 0.35  # of the height of the axes, for the notes above all losses
LINE: Final = 8.0  # points from one line of small text to the next
SPREAD: Final = 1.1  # from the first to the last mark of a depth, so that bars do not cover each other


@register_figure("loss-by-depth", title="loss by depth", order=30)
def loss_by_depth(results: Results) -> list[Picture]:
    """One picture per contest: one line per block; diverged seeds, and losses above the axis, are at the top."""
    style = styles(results.of_task("trainability")["label"], results.about)
    contests = results.contests()
    every = [contest for contest, _ in contests]
    single = list(groups(results.training_runs(), CONTEST))
    pictures = [
        _picture(
            f"loss-by-depth-{number}",
            contest,
            part[part["final_loss"].notna()],
            style,
            title_of(contest, every, family_name),
            results.about.chance_loss(contest["dataset"]),
            next((runs for other, runs in single if other == contest), results.training_runs().iloc[:0]),
        )
        for number, (contest, part) in enumerate(contests, start=1)
        if np.isfinite(part["final_loss"]).any()
    ]
    if not pictures:
        raise NothingToShow("loss by depth needs the trainability task with verdicts")
    return pictures


def _picture(
    name: str,
    contest: dict[str, Any],
    part: pd.DataFrame,
    style: dict[str, Style],
    contest_title: str,
    chance: float,
    runs: pd.DataFrame,
) -> Picture:
    style = of_blocks(style, part["block"])
    depths = sorted(part["depth"].unique())
    threshold = part["success_loss"].max()
    limit = HIGHEST * max(chance, threshold) if chance > 0 else math.inf
    notes: list[tuple[float, str, str]] = []
    alt: list[str] = []
    with settings():
        figure, (axes,) = panels(1, 1, 3.3)
        for index, block in enumerate(style):
            rungs = part[part["block"] == block].sort_values("depth")
            at = rungs["depth"] * SPREAD ** dodge(index, len(style), min(1.0, 0.15 * (len(style) - 1)))
            finite = np.isfinite(rungs["final_loss"])
            line_with_band(axes, at.where(finite), rungs["final_loss"].where(finite), style[block])
            intervals(axes, at, rungs["loss_low"], rungs["loss_high"], style[block])
            for x, rung in zip(at, rows_of(rungs), strict=True):
                seeds = runs.loc[(runs["block"] == block) & (runs["depth"] == rung["depth"]), "final_loss"]
                seed_dots(axes, x, seeds, style[block])
                notes += [(rung["depth"], note, style[block].colour) for note in _notes(rung, seeds, limit)]
            alt += [
                f"{block} at depth {depth}: " + (f"{three(loss)} nat" if np.isfinite(loss) else "diverged")
                for depth, loss in zip(rungs["depth"], rungs["final_loss"], strict=True)
            ]
        reference_losses(axes, chance, threshold, side="outside")
        log_axis(axes, "y")
        axes.set_xlim(depths[0] / 1.3, depths[-1] * 1.3)
        log_axis(axes, "x", at=depths)
        axes.set_xlabel("depth, layers (log)")
        axes.set_ylabel("final training loss, nat (log)")
        title = f"{contest_title}: final training loss by depth"
        head(figure, title)
        extra = [mark("x", "diverged seeds")] if (part["diverged"] > 0).any() else []
        dots = part["n"].gt(1) & (part["n"] - part["diverged"]).between(1, DOTS_BELOW - 1)
        extra += [mark(".", "a seed")] if dots.any() else []
        legend(figure, style, extra, lines=True)
        _write_notes(axes, notes, limit)
    caption = (
        f"{contest_text(contest)}. Geometric means over n = {seeds_text(part['n'])}, bars: 95 % t intervals of log10; "
        "if a seed diverged: the median, without interval, or no mark if half of them did. Dotted: the loss of a "
        "constant prediction (chance) and the threshold of success."
    )
    if any("↑" in note for _, note, _ in notes):
        caption += " ↑: the highest value of a loss, its bar or its seeds that lie above the axis."
    return Picture(name, title, f"Final loss by depth. {joined(alt, 60)}", caption, figure)


def _notes(rung: dict[str, Any], seeds: pd.Series, limit: float) -> list[str]:
    """What is written above a block and depth: how many seeds diverged, and its highest loss if above ``limit``."""
    notes = [f"× {rung['diverged']:.0f} of {rung['n']:.0f}"] if rung["diverged"] > 0 else []
    losses = [loss for loss in (rung["final_loss"], rung["loss_high"], *seeds) if limit < loss < math.inf]
    return [*notes, f"↑ {three(max(losses))}"] if losses else notes


def _write_notes(axes: Axes, notes: list[tuple[float, str, str]], limit: float) -> None:
    """End the losses at ``limit``, and write ``notes``, each with its depth and colour, in lines above them.

    Called last, because the height of the axes follows from the title and the legend."""
    low, high = axes.get_ylim()
    high = min(high, limit)
    axes.set_ylim(low, high)
    if notes:
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.draw_without_rendering()
        height = axes.get_window_extent().height / figure.dpi * 72  # points
        most = int(MOST_ROOM * height / LINE)
        lines = min(most, max(Counter(depth for depth, _, _ in notes).values()))
        room = (lines + 0.5) * LINE / height
        top = high * (high / low) ** (room / (1 - room))
        axes.set_ylim(low, top)
        axes.axhspan(high, top, color="white", linewidth=0, zorder=2.4)  # hides what is above, but not the spines
    log_axis(axes, "y")
    for depth in sorted({depth for depth, _, _ in notes}):
        texts = [(text, colour) for other, text, colour in notes if other == depth]
        if len(texts) > lines:
            texts = [*texts[: lines - 1], (f"{len(texts) - lines + 1} more", NEUTRAL)]
        for number, (text, colour) in enumerate(texts):
            axes.annotate(
                text,
                (depth, 1),
                xycoords=axes.get_xaxis_transform(),
                xytext=(0, -LINE * (number + 0.5)),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=6.5,
                color=colour,
            )

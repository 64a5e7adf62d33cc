"""The figures of a search: best loss by depth, and the expected best loss of k trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from highway_bench.frames.rows import rows_of
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import dodge, head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.figures.drawing import crosses, point_with_interval, reference_losses, seed_dots
from highway_bench.report.format import three
from highway_bench.report.style import styles as styles_of
from highway_bench.reproduce._trials import Trials
from highway_bench.reproduce.quantities import BEST_OF, expected_best
from highway_bench.success.judging import THRESHOLD

ARMS = ("plain", "highway")
COLUMNS = 2  # of panels by depth


def best(table: pd.DataFrame, chance: float) -> Picture:
    """The expected best of 20 trials by depth; at the same position the best trial, and its settings on fresh seeds."""
    styles = styles_of(ARMS)
    depths = sorted(table["depth"].unique())
    alt = []
    with settings():
        figure, (axes,) = panels(1, 1, 3.4)
        for number, arm in enumerate(ARMS):
            part = table[table["block"] == arm].sort_values("depth")
            at = [depths.index(depth) + dodge(number, len(ARMS), 0.12) for depth in part["depth"]]
            style = styles[arm]
            expected = [loss if math.isfinite(loss) else math.nan for loss in part["expected"]]
            axes.plot(at, expected, color=style.colour, marker=style.marker, linestyle=style.dash, linewidth=1.2)
            axes.plot(
                at, part["best"], color=style.colour, marker="_", markersize=12, markeredgewidth=1.6, linestyle=""
            )
            for x, row in zip(at, rows_of(part), strict=True):
                if math.isinf(row["winner"]):
                    crosses(axes, x, style, edge="top")
                elif row["seeds"]:
                    seed_dots(axes, x, row["again"], style)
                    bounds = (row["winner_low"], row["winner_high"]) if row["seeds"] > 1 else None
                    point_with_interval(axes, x, row["winner"], style, bounds, filled=False, zorder=4)
            alt += [f"{arm}, {row['depth']} layers: {three(row['expected'])}" for row in rows_of(part)]
        reference_losses(axes, chance, THRESHOLD * chance)
        log_axis(axes, "y")
        axes.set_xticks(range(len(depths)), [f"{depth:g}" for depth in depths])
        axes.set_xlabel("layers (not to scale)")
        axes.set_ylabel("final training loss, nat (log)")
        title = f"Best loss of {BEST_OF} trials by depth"
        head(figure, title)
        extra = [
            mark("o", f"expected best of {BEST_OF}"),
            mark("_", "best trial"),
            mark("o", "on fresh seeds", filled=False),
            mark(".", "a seed"),
            *([mark("x", "some seed diverged")] if np.isinf(table["winner"]).any() else []),
        ]
        legend(figure, styles, extra, lines=True)
    return Picture(
        "figure1-best",
        title,
        f"Expected best loss of {BEST_OF} trials by depth. {joined(alt)}",
        f"Filled: expected best of {BEST_OF} trials. Dashes: the lowest final loss of all trials. Open: the settings "
        "of that trial on fresh seeds, geometric mean with 95 % t interval of log₁₀. Marks of one arm and depth are at "
        "one position.",
        figure,
    )


def best_of(trials: Trials, chance: float) -> Picture:
    """The expected best loss of k trials against k."""
    styles = styles_of(ARMS)

    def draw(axes: Axes, arm: str, depth: int) -> None:
        losses = trials.get((arm, depth), np.array([]))
        expected = [10 ** float(expected_best(losses, k)) for k in range(1, len(losses) + 1)]
        shown = [value if math.isfinite(value) else math.nan for value in expected]
        axes.plot(range(1, len(losses) + 1), shown, color=styles[arm].colour, linestyle=styles[arm].dash)

    return _by_depth(
        "figure1-best-of-k",
        "Expected best loss against the number of trials",
        trials,
        draw,
        ("trials", "expected best loss, nat (log)"),
        "Geometric mean over all draws of k of the trials. Draws whose trials all diverged do not count, and a line "
        "begins where they are fewer than half. Dotted: the loss of a constant prediction (chance) and the threshold "
        "of success.",
        chance,
    )


def _by_depth(
    name: str,
    title: str,
    trials: Trials,
    draw: Callable[[Axes, str, int], None],
    labels: tuple[str, str],
    caption: str,
    chance: float,
) -> Picture:
    """A figure with one panel per depth and both arms in each, with chance and the threshold."""
    depths = sorted({depth for _, depth in trials})
    with settings():
        figure, all_axes = panels(len(depths), COLUMNS, 1.9, sharex=True, sharey=True)
        for axes, depth in zip(all_axes, depths, strict=True):
            for arm in ARMS:
                draw(axes, arm, depth)
            axes.set_title(f"{depth} layers")
            rightmost = depth == depths[-1] or depths.index(depth) % COLUMNS == COLUMNS - 1
            reference_losses(axes, chance, THRESHOLD * chance, side="outside", named=rightmost)
        for axes in all_axes:
            log_axis(axes, "y")
        for axes in all_axes[-COLUMNS:]:
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            axes.set_xlabel(labels[0])
        figure.supylabel(labels[1], fontsize=9)
        head(figure, title)
        legend(figure, {arm: replace(style, marker="") for arm, style in styles_of(ARMS).items()}, lines=True)
    return Picture(name, title, f"{title}, at {joined([f'{depth} layers' for depth in depths])}", caption, figure)

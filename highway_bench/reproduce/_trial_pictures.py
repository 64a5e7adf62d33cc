"""The figures of a search: best loss by depth, the best trials' curves, and the expected best loss of k trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import dodge, head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.figures.drawing import crosses, point_with_interval, reference_losses, seed_dots
from highway_bench.report.format import counted, three
from highway_bench.report.rows import rows_of
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
        title = _headline(table)
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


def _headline(table: pd.DataFrame) -> str:
    deepest = table["depth"].max()
    best = table[table["depth"] == deepest].set_index("block")["expected"]
    if set(ARMS) <= set(best.index) and np.isfinite(best[[*ARMS]]).all():
        return (
            f"At {deepest} layers the expected best of {BEST_OF} trials is {three(best['plain'])} nat with plain, "
            f"{three(best['highway'])} with highway"
        )
    return f"Best losses up to {deepest} layers"


def curves(rows: pd.DataFrame, trials: Trials, chance: float) -> Picture:
    """Loss by step of the best trial of each arm, one panel per depth, as in the paper's figure."""
    styles = styles_of(ARMS)
    lowest = {arm: float(losses.min()) for arm, losses in trials.items()}

    def draw(axes: Axes, arm: str, depth: int) -> None:
        here = rows[(rows["block"] == arm) & (rows["depth"] == depth - 1) & rows["trial"].notna()]
        ended = here[(here["metric"] == "final_loss") & (here["axis"] == "")].dropna(subset=["value"])
        if len(ended):
            trial = ended.sort_values("value")["trial"].iloc[0]
            curve = here[(here["trial"] == trial) & (here["axis"] == "step")].sort_values("index")
            axes.plot(curve["index"], curve["value"], color=styles[arm].colour, linestyle=styles[arm].dash)

    return _by_depth(
        "figure1-curves",
        f"The best trial of {_compared(lowest)}",
        trials,
        draw,
        ("step", "training loss, nat (log)"),
        "Each point is the mean over a fiftieth of the run. Dotted: the loss of a constant prediction (chance) and the "
        "threshold of success.",
        chance,
    )


def _compared(losses: Mapping[tuple[str, int], float]) -> str:
    """The losses of both arms at the smallest and the largest depth: "plain and of highway ends at 0.001 and 0.01 nat
    at 10 layers, at 0.1 and 0.01 at 100"."""
    depths = sorted({depth for _, depth in losses if all((arm, depth) in losses for arm in ARMS)})
    if not depths:
        return f"{' and '.join(ARMS)}, by depth"
    ends = [" and ".join(three(losses[arm, depth]) for arm in ARMS) for depth in (depths[0], depths[-1])]
    text = f"plain and of highway ends at {ends[0]} nat at {depths[0]} layers"
    return text + (f", at {ends[1]} at {depths[-1]}" if len(depths) > 1 else "")


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
        _as_good_as_all_of_plain(trials),
        trials,
        draw,
        ("trials", "expected best loss, nat (log)"),
        "Geometric mean over all draws of k of the trials. Draws whose trials all diverged do not count, and a line "
        "begins where they are fewer than half. Dotted: the loss of a constant prediction (chance) and the threshold "
        "of success.",
        chance,
    )


def _as_good_as_all_of_plain(trials: Trials) -> str:
    """The number of highway's trials whose expected best loss is below plain's best of all, at the largest depth."""
    deepest = max((depth for _, depth in trials), default=0)
    plain, highway = (trials.get((arm, deepest), np.array([])) for arm in ARMS)
    if not (len(plain) and len(highway)):
        return "Expected best loss against the number of trials"
    best = plain.min()
    if math.isinf(best):
        return f"At {deepest} layers every trial of plain diverged"
    enough = next((k for k in range(1, len(highway) + 1) if 10 ** expected_best(highway, k) < best), None)
    if enough is None:
        return f"At {deepest} layers no number of highway's trials has a lower expected best loss than plain's best"
    of_highway = f"the expected best of {counted(enough, 'trial')}"
    return f"At {deepest} layers {of_highway} of highway is below the best of all {len(plain)} of plain"


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

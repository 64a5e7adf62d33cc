"""The figures of a search: best loss by depth, the best trials' curves, and the expected best loss of k trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from highway_bench.measure.statistics import best_of_k
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, legend, log_axis, panels, settings
from highway_bench.report.format import three
from highway_bench.report.rows import rows_of
from highway_bench.report.style import styles as styles_of
from highway_bench.reproduce._trials import Trials

ARMS = ("plain", "highway")


def best(table: pd.DataFrame) -> Picture:
    """Best loss against depth, and the winners' losses on other seeds with their intervals."""
    styles = styles_of(ARMS)
    alt = []
    with settings():
        figure, (axes,) = panels(1, 1, 3.2)
        for number, arm in enumerate(ARMS):
            part = table[table["block"] == arm].sort_values("depth")
            style = styles[arm]
            axes.plot(part["depth"], part["best"], color=style.colour, marker=style.marker, linestyle="-")
            shifted = part["depth"] * (1.05 if number else 0.95)
            axes.plot(
                shifted,
                part["winner"],
                color=style.colour,
                marker=style.marker,
                markerfacecolor="white",
                linestyle="none",
            )
            axes.vlines(shifted, part["winner_low"], part["winner_high"], color=style.colour, linewidth=2, alpha=0.45)
            alt += [f"{arm}, {row['depth']} layers: {three(row['best'])}" for row in rows_of(part)]
        log_axis(axes, "y")
        axes.set_xlim(table["depth"].min() / 1.3, table["depth"].max() * 1.3)
        log_axis(axes, "x", at=sorted(table["depth"].unique()))
        axes.set_xlabel("layers (log)")
        axes.set_ylabel("final training loss, nat (log)")
        title = _headline(table)
        head(figure, title)
        extra = [
            Line2D([], [], color="#555555", marker="o", linestyle="none", label="best trial"),
            Line2D(
                [],
                [],
                color="#555555",
                marker="o",
                linestyle="none",
                markerfacecolor="white",
                label="winner, fresh seeds",
            ),
        ]
        legend(figure, styles, extra, lines=True)
    return Picture(
        "figure1-best",
        title,
        f"Best loss by depth. {joined(alt)}",
        "Filled: the lowest final loss of the trials. Open: that trial's settings on fresh seeds, geometric "
        "mean with 95 % t interval of log10.",
        figure,
    )


def _headline(table: pd.DataFrame) -> str:
    deepest = table["depth"].max()
    best = table[table["depth"] == deepest].set_index("block")["best"]
    if set(ARMS) <= set(best.index) and best["highway"] > 0 and np.isfinite(best["plain"]):
        return (
            f"At {deepest} layers the best loss is {three(best['plain'])} under plain, {three(best['highway'])} "
            "under highway"
        )
    return f"Best losses up to {deepest} layers"


def curves(rows: pd.DataFrame, trials: Trials) -> Picture:
    """Loss by step of the best trial of each arm, one panel per depth, as in the paper's figure."""
    styles = styles_of(ARMS)

    def draw(axes: Axes, arm: str, depth: int) -> None:
        here = rows[(rows["block"] == arm) & (rows["depth"] == depth - 1) & rows["trial"].notna()]
        ended = here[(here["metric"] == "final_loss") & (here["axis"] == "")].dropna(subset=["value"])
        if len(ended):
            trial = ended.sort_values("value")["trial"].iloc[0]
            curve = here[(here["trial"] == trial) & (here["axis"] == "step")].sort_values("index")
            axes.plot(curve["index"], curve["value"], color=styles[arm].colour, linestyle=styles[arm].dash)

    return _by_depth(
        "figure1-curves",
        "Training loss of the best trial of each depth",
        trials,
        draw,
        ("step", "training loss, nat (log)"),
        "Each point is the mean over a fiftieth of the run.",
    )


def best_of(trials: Trials) -> Picture:
    """The expected best loss of k trials against k."""
    styles = styles_of(ARMS)

    def draw(axes: Axes, arm: str, depth: int) -> None:
        losses = trials.get((arm, depth), np.array([]))
        expected = [best_of_k(losses, k) for k in range(1, len(losses) + 1)]
        shown = [value if math.isfinite(value) else math.nan for value in expected]
        axes.plot(range(1, len(losses) + 1), shown, color=styles[arm].colour, linestyle=styles[arm].dash)

    return _by_depth(
        "figure1-best-of-k",
        "Expected best loss against the number of trials",
        trials,
        draw,
        ("trials", "expected best loss, nat (log)"),
        "Unbiased estimates. A line begins at the first k for which k trials cannot all have diverged.",
    )


def _by_depth(
    name: str, title: str, trials: Trials, draw: Callable[[Axes, str, int], None], labels: tuple[str, str], caption: str
) -> Picture:
    """A figure with one panel per depth and both arms in each."""
    depths = sorted({depth for _, depth in trials})
    with settings():
        figure, all_axes = panels(len(depths), 2, 1.9, sharex=True, sharey=True)
        for axes, depth in zip(all_axes, depths, strict=True):
            for arm in ARMS:
                draw(axes, arm, depth)
            axes.set_title(f"{depth} layers")
        for axes in all_axes:
            log_axis(axes, "y")
        for axes in all_axes[-2:]:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel(labels[0])
        figure.supylabel(labels[1], fontsize=9)
        head(figure, title)
        legend(figure, {arm: replace(style, marker="") for arm, style in styles_of(ARMS).items()}, lines=True)
    return Picture(name, title, f"{title}, at {joined([f'{depth} layers' for depth in depths])}", caption, figure)

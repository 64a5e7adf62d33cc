"""The table and the figure of BiLSTMs by depth: test accuracy, one panel per corpus."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from highway_bench.frames.rows import rows_of
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import dodge, head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.figures.drawing import DOTS_BELOW, intervals, seed_dots
from highway_bench.report.format import signed, three
from highway_bench.report.style import styles as styles_of
from highway_bench.reproduce._tuned import RATE_HINT


def in_percent(share: IntervalEstimate) -> str:
    """A share, or a difference of shares, in percent with its interval: 71.2 [70.1, 72.3]."""
    interval = (
        "" if math.isnan(share.low) else f" [{signed(100 * share.low, '.1f')}, {signed(100 * share.high, '.1f')}]"
    )
    return signed(100 * share.value, ".1f") + interval


def shown(table: pd.DataFrame, note: str) -> column.Shown:
    """The table with one row per corpus, depth and block."""

    def accuracy(record: column.Record) -> str:
        estimate = IntervalEstimate(record["accuracy"], record["low"], record["high"], record["n"])
        return f"{in_percent(estimate)} %"

    columns = [
        column.words("corpus", "corpus"),
        column.whole("depth", "layers"),
        column.words("block", "block"),
        column.whole("width", "width"),
        column.whole("params", "parameters"),
        column.whole("n", "seeds"),
        column.computed("test accuracy", accuracy, "mean over seeds with its 95 % t interval; none for a single seed"),
        column.percent("chance", "chance", "always the commoner class"),
        column.percent("train_accuracy", "train accuracy"),
        column.percent(
            "gain", "last epoch's gain", "in test accuracy; a large gain means that the budget was too short"
        ),
        column.whole("diverged", "diverged"),
        column.number("rate", "rate", hint=RATE_HINT),
        column.words("edge", "edge of the rates"),
        column.number("step_seconds", "step", "s"),
    ]
    return column.shown("bilstm-accuracy", "Test accuracy by depth", table, columns, note=note)


def picture(table: pd.DataFrame, runs: pd.DataFrame, caption: str) -> Picture:
    """Test accuracy against depth: one panel per corpus, one line per block, with intervals from two seeds on."""
    styles, alt = styles_of(table["block"]), []
    chances = dict(zip(table["corpus"], table["chance"], strict=True))
    depths = sorted(table["depth"].unique())
    with settings():
        figure, all_axes = panels(len(chances), 2, 2.9)
        for axes, (corpus, chance) in zip(all_axes, chances.items(), strict=True):
            for number, (block, style) in enumerate(styles.items()):
                own = table[(table["corpus"] == corpus) & (table["block"] == block)].sort_values("depth")
                at = own["depth"] * (1 + dodge(number, len(styles), 0.12))
                axes.plot(at, 100 * own["accuracy"], color=style.colour, linestyle=style.dash)
                intervals(axes, at, 100 * own["low"], 100 * own["high"], style)
                for x, record in zip(at, rows_of(own), strict=True):
                    alike = (runs["corpus"] == corpus) & (runs["block"] == block) & (runs["depth"] == record["depth"])
                    seed_dots(axes, x, 100 * runs.loc[alike, "test_accuracy"], style)
                    single = math.isnan(record["low"])
                    axes.plot(
                        x,
                        100 * record["accuracy"],
                        color=style.colour,
                        marker=style.marker,
                        markerfacecolor="white" if single else style.colour,
                    )
                alt += [
                    f"{corpus}, {block}, {record['depth']} layers: {three(100 * record['accuracy'])} %"
                    for record in rows_of(own)
                ]
            axes.axhline(100 * chance, color="#555555", linewidth=0.9, linestyle=":")
            axes.annotate(
                f"chance {three(100 * chance)} %",
                (1, 100 * chance),
                xytext=(0, 3),
                textcoords="offset points",
                fontsize=7.5,
                va="bottom",
                ha="left",
                color="#555555",
            )
            axes.set_title(corpus, loc="left")
            axes.set_xlim(depths[0] / 1.2, depths[-1] * 1.2)
            log_axis(axes, "x", at=depths)
            axes.set_xlabel("BiLSTM layers (log)")
        all_axes[0].set_ylabel("test accuracy, %")
        title = "Test accuracy by depth"
        head(figure, title)
        extra = [mark("o", "a single seed", filled=False)] if np.isnan(table["low"]).any() else []
        extra += [mark(".", "a seed")] if table["n"].between(2, DOTS_BELOW - 1).any() else []
        legend(figure, styles, extra, lines=True)
    seeds = sorted(set(table["n"]))
    caption += (
        f"; bars are 95 % t intervals over {' or '.join(map(str, seeds))} seeds, which may end below chance; dotted: "
        "always the commoner class."
    )
    return Picture("bilstm-accuracy", title, f"Test accuracy by depth. {joined(alt, 40)}", caption, figure)

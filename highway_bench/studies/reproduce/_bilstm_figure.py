"""The table and the figure of BiLSTMs by depth: test accuracy, one panel per corpus."""

from __future__ import annotations

import math

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import dodge, head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.figures.drawing import DOTS_BELOW, intervals, seed_dots
from highway_bench.report.format import signed, three
from highway_bench.report.style import styles as styles_of
from highway_bench.studies.reproduce.arms import RATE_COLUMNS, run_record
from highway_bench.studies.reproduce.quantities import mean

ARM = ["corpus", "depth", "block"]


def shown(runs: pd.DataFrame, gains: pd.Series, note: str) -> column.TextTable:
    """One row per corpus, depth and block: accuracy with its interval over seeds, size, rate, gain and step time."""

    def accuracy(record: column.Record) -> str:
        low, high = (signed(100 * record[name], ".1f") for name in ("low", "high"))
        interval = "" if math.isnan(record["low"]) else f" [{low}, {high}]"
        return f"{signed(100 * record['accuracy'], '.1f')}{interval} %"

    records = [
        {
            "corpus": corpus,
            "depth": depth,
            "block": block,
            "n": len(part),
            "chance": part["chance"].max(),
            "train_accuracy": part["train_accuracy"].mean(),
            "gain": gains.get((corpus, depth, block), math.nan),
            "diverged": int(part["diverged"].sum()),
            **run_record(part),
            **mean("", part["test_accuracy"]).columns("accuracy"),
        }
        for (corpus, depth, block), part in runs.groupby(ARM, sort=False)
    ]
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
        *RATE_COLUMNS,
        column.number("step_seconds", "step", "s"),
    ]
    return column.shown("bilstm-accuracy", "Test accuracy by depth", pd.DataFrame(records), columns, note=note)


def picture(runs: pd.DataFrame, caption: str) -> Picture:
    """Test accuracy against depth: one panel per corpus, one line per block, with intervals from two seeds on."""
    styles, alt = styles_of(runs["block"]), []
    corpora, depths = runs["corpus"].unique(), sorted(runs["depth"].unique())
    numbers = runs.groupby(ARM).size()
    with settings():
        figure, all_axes = panels(len(corpora), 2, 2.9)
        for axes, corpus in zip(all_axes, corpora, strict=True):
            here = runs[runs["corpus"] == corpus]
            chance = here["chance"].max()
            for number, (block, style) in enumerate(styles.items()):
                by_depth = 100 * here[here["block"] == block].set_index("depth")["test_accuracy"]
                means = {depth: mean("", own) for depth, own in by_depth.groupby(level=0)}
                at = [depth * (1 + dodge(number, len(styles), 0.12)) for depth in means]
                axes.plot(at, [one.value for one in means.values()], color=style.colour, linestyle=style.dash)
                intervals(axes, at, [one.low for one in means.values()], [one.high for one in means.values()], style)
                for x, (depth, one) in zip(at, means.items(), strict=True):
                    seed_dots(axes, x, by_depth[[depth]], style)
                    face = "white" if one.n == 1 else style.colour
                    axes.plot(x, one.value, color=style.colour, marker=style.marker, markerfacecolor=face)
                    alt.append(f"{corpus}, {block}, {depth} layers: {three(one.value)} %")
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
        extra = [mark("o", "a single seed", filled=False)] if numbers.eq(1).any() else []
        extra += [mark(".", "a seed")] if numbers.between(2, DOTS_BELOW - 1).any() else []
        legend(figure, styles, extra, lines=True)
    seeds = sorted(set(numbers))
    caption += (
        f"; bars are 95 % t intervals over {' or '.join(map(str, seeds))} seeds, which may end below chance; dotted: "
        "always the commoner class."
    )
    return Picture("bilstm-accuracy", title, f"Test accuracy by depth. {joined(alt, 40)}", caption, figure)

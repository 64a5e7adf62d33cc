"""The table and the picture of BiLSTMs by depth: test accuracy, a panel a corpus."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.format import three
from highway_bench.report.rows import rows_of
from highway_bench.report.style import styles


def in_percent(found: IntervalEstimate) -> str:
    """A share, or a difference of shares, times a hundred and with its interval: 71.2 [70.1, 72.3]."""
    ends = "" if math.isnan(found.low) else f" [{100 * found.low:.1f}, {100 * found.high:.1f}]"
    return f"{100 * found.value:.1f}{ends}".replace("-", "−")


def shown(table: pd.DataFrame, note: str) -> column.Shown:
    """A row a corpus, depth and block."""

    def accuracy(record: column.Record) -> column.Entry:
        found = IntervalEstimate(record["accuracy"], record["low"], record["high"], record["n"])
        return column.Entry(f"{in_percent(found)} %", record["accuracy"])

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
        column.percent("gain", "last epoch's gain", "of test accuracy: large where the budget ended too soon"),
        column.whole("diverged", "diverged"),
        column.number("rate", "rate", hint="the better of two, by one run each on another seed"),
        column.number("step_seconds", "step", "s"),
    ]
    return column.shown("bilstm-accuracy", "Test accuracy by depth", table, columns, note=note)


def picture(table: pd.DataFrame, caption: str) -> Picture:
    """A panel a corpus: accuracy by depth, a line a block, with intervals where seeds allow them."""
    look, told = styles(table["block"]), []
    chances = dict(zip(table["corpus"], table["chance"], strict=True))
    depths = sorted(table["depth"].unique())
    with settings():
        figure, all_axes = panels(len(chances), 2, 2.9)
        for axes, (corpus, chance) in zip(all_axes, chances.items(), strict=True):
            for block, style in look.items():
                own = table[(table["corpus"] == corpus) & (table["block"] == block)].sort_values("depth")
                axes.plot(own["depth"], 100 * own["accuracy"], color=style.colour, linestyle=style.dash)
                axes.fill_between(
                    own["depth"], 100 * own["low"], 100 * own["high"], color=style.colour, alpha=0.15, linewidth=0
                )
                for record in rows_of(own):
                    single = math.isnan(record["low"])
                    axes.plot(
                        record["depth"],
                        100 * record["accuracy"],
                        color=style.colour,
                        marker=style.marker,
                        markerfacecolor="white" if single else style.colour,
                    )
                told += [
                    f"{corpus}, {block}, {record['depth']} layers: {three(100 * record['accuracy'])} %"
                    for record in rows_of(own)
                ]
            axes.axhline(100 * chance, color="#555555", linewidth=0.9, linestyle=":")
            axes.annotate(
                "chance",
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
        title = _title(table)
        head(figure, title)
        extra = [mark("o", "a single seed", filled=False)] if np.isnan(table["low"]).any() else []
        legend(figure, look, extra, lines=True)
    seeds = sorted(set(table["n"]))
    caption += (
        f"; bands are 95 % t intervals over {' or '.join(map(str, seeds))} seeds; dotted: always the commoner class."
    )
    return Picture("bilstm-accuracy", title, f"Test accuracy by depth. {joined(told, 40)}", caption, figure)


def _title(table: pd.DataFrame) -> str:
    """What depth does to plain and highway, at the deepest that both have with an interval."""
    parts = []
    for corpus, part in table.groupby("corpus", sort=False):
        sure = part[part["low"].notna()].pivot_table(index="depth", columns="block", values="accuracy")
        sure = sure.reindex(columns=["plain", "highway"]).dropna()
        if len(sure):
            ends = [f"{block} {100 * sure[block].iloc[0]:.0f} → {100 * sure[block].iloc[-1]:.0f} %" for block in sure]
            parts.append(f"{corpus}, {sure.index[0]:.0f} to {sure.index[-1]:.0f} layers: {', '.join(ends)}")
    return "; ".join(parts) or "Test accuracy of BiLSTMs by depth"

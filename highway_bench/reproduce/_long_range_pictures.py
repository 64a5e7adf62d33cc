"""The table and the figure of long ranges: steps to the threshold by length, family and block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from highway_bench.measure.statistics import log10_interval, wilson
from highway_bench.report import columns as column
from highway_bench.report.descriptions import UNDESCRIBED
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import dodge, head, joined, legend, log_axis, mark, panels, settings
from highway_bench.report.format import between, count
from highway_bench.report.style import Style
from highway_bench.report.style import styles as styles_of
from highway_bench.reproduce._tuned import RATE_HINT

MISSED = 1.3  # × the budget: the y value at which a miss is drawn

Hits = Mapping[int, Mapping[int, float]]
"""Length → seed → step at which the run reached the threshold (its hit), ∞ for a miss."""


def steps_text(steps: Sequence[float]) -> str:
    """Steps to the hit, over seeds: "310–420 steps, 3 of 3 seeds"."""
    reached = sorted(step for step in steps if math.isfinite(step))
    if not reached:
        return f"no hit in {len(steps)} seeds"
    return f"{_range(reached)} steps, {len(reached)} of {len(steps)} seeds"


def _range(values: Sequence[float]) -> str:
    low, high = count(min(values)), count(max(values))
    return low if low == high else f"{low}–{high}"


def table_of(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per length, family and block, from the ``runs`` of all seeds."""
    records = []
    order = {"block": UNDESCRIBED.block_order(runs["block"]).index}
    arm = ["seq_len", "family", "block"]
    ordered = runs.sort_values(
        arm, kind="stable", key=lambda column: column.map(order[column.name]) if column.name in order else column
    )
    for _, part in ordered.groupby(arm, sort=False):
        first, reached = part.iloc[0], int((part["hit"] < math.inf).sum())
        low, high = wilson(reached, len(part))
        loss = log10_interval(part["relative"]) if (part["relative"] > 0).all() else None
        records.append(
            {
                "length": first["seq_len"],
                "family": first["family"],
                "block": first["block"],
                "width": part["width"].max(),
                "params": part["params"].max(),
                "rate": part["rate"].median(),
                "edge": first["edge"],
                "hits": f"{reached} of {len(part)} {between(low, high)}",
                "steps": steps_text(list(part["hit"])),
                "relative": loss.value if loss else math.nan,
                "low": loss.low if loss else math.nan,
                "high": loss.high if loss else math.nan,
                "step_seconds": part["step_seconds"].median(),
            }
        )
    return pd.DataFrame(records)


def shown(table: pd.DataFrame, note: str) -> column.Shown:
    """The rows of ``table_of`` as a table of the page."""
    columns = [
        column.whole("length", "T"),
        column.words("family", "family"),
        column.words("block", "block"),
        column.whole("width", "width"),
        column.whole("params", "parameters"),
        column.number("rate", "rate", hint=RATE_HINT),
        column.words("edge", "edge of the rates"),
        column.words("hits", "seeds that hit", "of those that ended, with Wilson's 95 % interval"),
        column.words("steps", "steps to the hit", "range over seeds"),
        column.spread("relative", "final loss / chance", "low", "high", "1", "geometric mean, 95 % t interval"),
        column.number("step_seconds", "step", "s"),
    ]
    return column.shown("long-range", "Steps to learn by sequence length", table, columns, note=note)


def picture(steps: Mapping[str, Mapping[str, Hits]], budget: int, title: str, caption: str) -> Picture:
    """Steps to the hit against length: one panel per family, one mark per seed, one line per block."""
    styles, alt = styles_of(dict.fromkeys(block for by_block in steps.values() for block in by_block)), []
    with settings():
        figure, axes = panels(len(steps), 2, 2.8, sharey=True)
        for panel, (family, by_block) in zip(axes, steps.items(), strict=True):
            _draw(panel, by_block, budget, styles)
            panel.axhline(budget, color="#555555", linewidth=0.8, linestyle=":")
            panel.set_title(family, loc="left")
            panel.set_ylim(budget / 25, budget * 2.3)  # with room for the number of misses
            lengths = sorted({length for hits in by_block.values() for length in hits})
            if lengths:
                panel.set_xlim(lengths[0] / 1.4, lengths[-1] * 1.4)
                log_axis(panel, "x", at=lengths)
            log_axis(panel, "y")
            alt += [
                f"{block} {family}, T = {length}: {steps_text(list(of_seeds.values()))}"
                for block, hits in by_block.items()
                for length, of_seeds in hits.items()
            ]
        for panel in axes:
            panel.set_xlabel("length T (log)")
        figure.supylabel("steps to a tenth of chance (log)", fontsize=9)
        head(figure, title)
        arms = [hits for by_block in steps.values() for hits in by_block.values()]
        missed = any(math.isinf(hit) for hits in arms for of_seeds in hits.values() for hit in of_seeds.values())
        legend(figure, styles, [mark("x", "missed")] if missed else [], lines=True)
    caption += " One mark per seed, lines through medians"
    caption += f"; a cross has the number of seeds that missed within {count(budget)} steps." if missed else "."
    return Picture("long-range", title, f"Steps to the threshold by length. {joined(alt, 40)}", caption, figure)


def _draw(panel: Axes, by_block: Mapping[str, Hits], budget: int, styles: Mapping[str, Style]) -> None:
    """One family's blocks next to each other, misses above the budget."""
    for number, (block, hits) in enumerate(by_block.items()):
        style = styles[block]
        shift = [length * math.exp(dodge(number, len(by_block), 0.12)) for length in hits]
        middles = [median(of_seeds.values()) for of_seeds in hits.values()]
        panel.plot(
            shift,
            [step if math.isfinite(step) else math.nan for step in middles],
            color=style.colour,
            linestyle=style.dash,
            linewidth=1.2,
        )
        for x, of_seeds in zip(shift, hits.values(), strict=True):
            reached = [step for step in of_seeds.values() if math.isfinite(step)]
            options: dict[str, Any] = {"color": style.colour, "linestyle": "none", "markersize": 4.5, "alpha": 0.8}
            panel.plot([x] * len(reached), reached, marker=style.marker, **options)
            if missed := len(of_seeds) - len(reached):
                panel.plot(x, MISSED * budget, marker="x", **options)
                panel.annotate(
                    count(missed),
                    (x, MISSED * budget),
                    xytext=(0, 4),
                    textcoords="offset points",
                    ha="center",
                    fontsize=7.5,
                    color=style.colour,
                )

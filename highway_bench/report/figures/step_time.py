"""What a block's step costs beside plain's, family by family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    dodge,
    head,
    in_lines,
    joined,
    legend,
    log_axis,
    mark,
    panels,
    settings,
)
from highway_bench.report.figures.dot_rows import ROWS, in_pictures, place_names
from highway_bench.report.ratio import PERCENT, geometric_mean, is_decided, quoted
from highway_bench.report.rows import YARDSTICK, groups, prepared, rows_of
from highway_bench.report.style import looks
from highway_bench.report.tables.throughput import throughput_table, to_quote
from highway_bench.results.schema import Status

SETTING = ("machine", "device", "threads", "dtype", "mode", "phase", "match")


def step_time_ratio(rows: pd.DataFrame) -> list[Picture]:
    """A picture a setting (phase, mode, …): a mark a block in every family with its interval, open where that is wide.

    What has no ratio, for it failed or was not paired, is a cross at the edge."""
    table = to_quote(throughput_table(prepared(rows)))
    table = table[table["status"] != Status.SKIPPED]
    pictures: list[Picture] = []
    for setting, part in groups(table, SETTING):
        if part.loc[part["block"] != YARDSTICK, "ratio"].notna().any():
            places = list(groups(part, ROWS))
            pictures += [
                _picture(f"step-time-{len(pictures) + number}", setting, chunk, table)
                for number, chunk in enumerate(in_pictures(places), start=1)
            ]
    if not pictures:
        raise NothingToShow("step-time ratios need plain and another block that were timed in turn, in one setting")
    return pictures


def _picture(
    name: str, setting: dict[str, object], places: list[tuple[dict[str, object], pd.DataFrame]], table: pd.DataFrame
) -> Picture:
    look = {block: style for block, style in looks(table["block"]).items() if block != YARDSTICK}
    names = place_names([place for place, _ in places])
    blocks = [block for block in look if any((part["block"] == block).any() for _, part in places)]
    told: list[str] = []
    lacking = False
    with settings():
        figure, (axes,) = panels(1, 1, max(1.6, len(places) * (0.16 * len(blocks) + 0.14)))
        for height, (_, part) in enumerate(places):
            for turn, block in enumerate(blocks):
                at = height + dodge(turn, len(blocks))
                for cell in rows_of(part[part["block"] == block]):
                    told.append(f"{names[height]}, {block}: {_quoted(cell)}")
                    if np.isnan(cell["ratio"]):
                        lacking = True
                        axes.plot(
                            0.985,
                            at,
                            marker="x",
                            color=look[block].colour,
                            linestyle="none",
                            transform=axes.get_yaxis_transform(),
                            clip_on=False,
                        )
                        continue
                    axes.plot(
                        [cell["ratio_low"], cell["ratio_high"]],
                        [at, at],
                        color=look[block].colour,
                        linewidth=2.2,
                        alpha=0.55,
                        solid_capstyle="butt",
                    )
                    axes.plot(
                        cell["ratio"],
                        at,
                        marker=look[block].marker,
                        color=look[block].colour,
                        linestyle="none",
                        markerfacecolor=look[block].colour if is_decided(*_estimate(cell)) else "white",
                    )
        axes.axvline(1.0, color="black", linewidth=1.0)
        axes.set_yticks(range(len(places)), [in_lines(text) for text in names], linespacing=1.0)
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.grid(False, axis="y")
        for edge in range(1, len(places)):
            axes.axhline(edge - 0.5, color="#e3e3e3", linewidth=0.6)
        log_axis(axes, "x")
        axes.set_xlabel("step time ÷ plain's step time (log)")
        known = pd.concat([part for _, part in places])
        known = known[(known["block"] != YARDSTICK) & known["ratio"].notna()]
        title = _finding(known)
        head(figure, title)
        extra = [mark("x", "no ratio: failed or not paired")] if lacking else []
        if not all(is_decided(*_estimate(cell)) for cell in rows_of(known)):
            extra.append(mark("o", f"undecided: interval beyond ± {PERCENT}", filled=False))
        legend(figure, {block: look[block] for block in blocks}, extra)
    where = ", ".join(str(setting[key]) for key in ("phase", "mode", "dtype", "device", "machine") if setting[key])
    counts = known["n"].dropna()
    n = " to ".join(dict.fromkeys(str(int(count)) for count in (counts.min(), counts.max()))) if len(counts) else "?"
    caption = (
        f"{where}; equal {setting['match']}. Marks are ratios of paired samples, bars their 95 % intervals; the line "
        f"at 1 is plain. Samples a cell: {n}."
    )
    return Picture(name, title, f"Dot plot, step time over plain's. {joined(told, 60)}", caption, figure)


def _estimate(cell: Mapping[str, Any]) -> tuple[float, float, float]:
    return cell["ratio"], cell["ratio_low"], cell["ratio_high"]


def _quoted(cell: Mapping[str, Any]) -> str:
    return quoted(*_estimate(cell), cell["ratio_gap"])


def _finding(ratios: pd.DataFrame) -> str:
    """The cheapest and the dearest block by geometric mean."""
    if ratios.empty:
        return "Step time over plain's is not known here: nothing was paired with plain"
    found = {
        str(block): geometric_mean([_estimate(cell) for cell in rows_of(part)])
        for block, part in ratios.groupby("block")
    }
    ranked = sorted(found, key=lambda block: found[block])
    count = int(ratios.groupby("block").size().max())
    over = f" (geometric mean of {count} families and depths)" if count > 1 else ""
    first = f"{ranked[0]}'s step ÷ plain's: {quoted(*found[ranked[0]])}"
    if len(ranked) == 1:
        return first + over
    return f"{first}; {ranked[-1]}'s: {quoted(*found[ranked[-1]])}{over}"

"""What a block's step costs beside plain's, family by family."""

from __future__ import annotations

import numpy as np
import pandas as pd

from highway_bench.report.figures._base import (
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
from highway_bench.report.figures.places import ROWS, in_pictures, place_names
from highway_bench.report.frame import YARDSTICK, groups, prepared, rows_of
from highway_bench.report.number import between, three
from highway_bench.report.style import looks
from highway_bench.report.tables.throughput import throughput_table
from highway_bench.results.schema import Status

SETTING = ("machine", "device", "threads", "dtype", "mode", "phase", "match")


def step_time_ratio(rows: pd.DataFrame) -> list[Picture]:
    """A picture a setting (phase, mode, …): a dot a block in every family, with the interval of a paired ratio."""
    table = throughput_table(prepared(rows))
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
        raise NothingToShow("step-time ratios need plain and another block timed in one setting")
    return pictures


def _picture(
    name: str, setting: dict[str, object], places: list[tuple[dict[str, object], pd.DataFrame]], table: pd.DataFrame
) -> Picture:
    look = {block: style for block, style in looks(table["block"]).items() if block != YARDSTICK}
    names = place_names([place for place, _ in places])
    blocks = [block for block in look if any((part["block"] == block).any() for _, part in places)]
    told: list[str] = []
    failed = False
    with settings():
        figure, (axes,) = panels(1, 1, max(1.6, len(places) * (0.16 * len(blocks) + 0.14)))
        for height, (_, part) in enumerate(places):
            for turn, block in enumerate(blocks):
                at = height + dodge(turn, len(blocks))
                for cell in rows_of(part[part["block"] == block]):
                    if np.isnan(cell["ratio"]):
                        failed = True
                        axes.plot(
                            0.985,
                            at,
                            marker="x",
                            color=look[block].colour,
                            linestyle="none",
                            transform=axes.get_yaxis_transform(),
                            clip_on=False,
                        )
                        told.append(f"{names[height]}, {block}: {cell['status']}")
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
                        markerfacecolor=look[block].colour if cell["paired"] else "white",
                    )
                    told.append(
                        f"{names[height]}, {block}: {three(cell['ratio'])} times plain "
                        f"{between(cell['ratio_low'], cell['ratio_high'])}".strip()
                    )
        axes.axvline(1.0, color="black", linewidth=1.0)
        axes.set_yticks(range(len(places)), [in_lines(text) for text in names], linespacing=1.0)
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.grid(False, axis="y")
        for edge in range(1, len(places)):
            axes.axhline(edge - 0.5, color="#e3e3e3", linewidth=0.6)
        log_axis(axes, "x")
        axes.set_xlabel("step time ÷ plain's step time (log)")
        paired = pd.concat([part for _, part in places])
        paired = paired[(paired["block"] != YARDSTICK) & paired["ratio"].notna()]
        title = _finding(paired)
        head(figure, title)
        extra = [mark("x", "failed")] if failed else []
        extra += [] if paired["paired"].all() else [mark("o", "not paired: no interval", filled=False)]
        legend(figure, {block: look[block] for block in blocks}, extra)
    where = ", ".join(str(setting[key]) for key in ("phase", "mode", "dtype", "device", "machine") if setting[key])
    counts = paired["n"].dropna()
    n = " to ".join(dict.fromkeys(str(int(count)) for count in (counts.min(), counts.max()))) if len(counts) else "?"
    caption = (
        f"{where}; equal {setting['match']}. Dots are ratios of paired samples, bars their 95 % intervals; the line "
        f"at 1 is plain. Samples a cell: {n}."
    )
    return Picture(name, title, f"Dot plot, step time over plain's. {joined(told, 60)}", caption, figure)


def _finding(ratios: pd.DataFrame) -> str:
    """The cheapest and the dearest block by geometric mean over the paired ratios: the others have no interval, and may
    be of another hour."""
    if not ratios["paired"].any():
        return "Step time over plain's, not paired: too rough to rank blocks by"
    ratios = ratios[ratios["paired"]]
    logs = ratios.assign(log=np.log(ratios["ratio"])).groupby("block")["log"]
    means = np.exp(logs.mean()).sort_values(kind="stable")
    count = int(logs.size().max())
    over = f" (geometric mean of {count} families and depths)" if count > 1 else ""
    first = f"{means.index[0]}'s step takes {three(float(means.iloc[0]))} times plain's"
    if len(means) == 1:
        return first + over
    return f"{first}, {means.index[-1]}'s {three(float(means.iloc[-1]))} times{over}"

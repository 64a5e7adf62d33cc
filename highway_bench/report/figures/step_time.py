"""Step times over the baseline's, by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    legend,
    log_axis,
    mark,
    register_figure,
    settings,
)
from highway_bench.report.figures.dot_rows import DotRow, dot_plot, extremes, in_pictures
from highway_bench.report.figures.drawing import crosses, point_with_interval
from highway_bench.report.format import counted
from highway_bench.report.ratio import PERCENT, is_decided, quoted
from highway_bench.report.results import Results
from highway_bench.report.rows import groups, rows_of
from highway_bench.report.style import Style, of_blocks, styles
from highway_bench.results.schema import Status

SETTING = ("machine", "device", "threads", "dtype", "mode", "phase", "match")
UNKNOWN = "Step time over plain's is unknown: no block was sampled in turn with plain"


@register_figure("step-time", title="step time over plain's", order=50)
def step_time_ratio(results: Results) -> list[Picture]:
    """One picture per setting (phase, mode, …): one mark with its interval per family and block, open if undecided.

    A cell without a ratio, because it failed or was timed in one process, is a cross at the edge."""
    table = results.ratios()
    table = table[table["status"] != Status.SKIPPED]
    style = styles(table["block"], results.about)
    table = table[table["block"] != results.about.baseline]
    pictures: list[Picture] = []
    for setting, part in groups(table, SETTING):
        if part["ratio"].notna().any():
            pictures += [
                _picture(f"step-time-{len(pictures) + number}", setting, rows, style)
                for number, rows in enumerate(in_pictures(part), start=1)
            ]
    if not pictures:
        raise NothingToShow("step-time ratios need a block that was timed in several processes")
    return pictures


def _picture(name: str, setting: Mapping[str, object], rows: Sequence[DotRow], style: Mapping[str, Style]) -> Picture:
    cells = pd.concat([part for _, part in rows])
    known = cells[cells["ratio"].notna()]
    style = of_blocks(style, cells["block"])
    number = cells["threads"].iloc[0]
    threads = [counted(number, "thread")] if number else []

    def draw(axes: Axes, height: float, block: str, cell: dict[str, Any]) -> str:
        if np.isnan(cell["ratio"]):
            crosses(axes, height, style[block], edge="right")
        else:
            bounds, decided = (cell["ratio_low"], cell["ratio_high"]), is_decided(*_estimate(cell))
            point_with_interval(axes, cell["ratio"], height, style[block], bounds, along="x", filled=decided)
        return quoted(*_estimate(cell), cell["ratio_gap"])

    with settings():
        figure, axes, described = dot_plot(rows, list(style), draw, spacing=0.16)
        axes.axvline(1.0, color="black", linewidth=1.0)
        log_axis(axes, "x")
        axes.set_xlabel("step time ÷ plain's step time (log)")
        timed = ", ".join([str(setting[key]) for key in ("phase", "mode") if setting[key]] + threads)
        title = f"{timed}: step ÷ plain's {extremes(known, 'ratio', _ratio)}" if len(known) else UNKNOWN
        head(figure, title)
        extra = [mark("x", "no ratio: failed or one process")] if cells["ratio"].isna().any() else []
        if not all(is_decided(*_estimate(cell)) for cell in rows_of(known)):
            extra.append(mark("o", f"undecided: interval beyond ± {PERCENT}", filled=False))
        legend(figure, style, extra)
    where = ", ".join([timed, *(str(setting[key]) for key in ("dtype", "device", "machine") if setting[key])])
    counts = known["n"].dropna()
    n = " to ".join(dict.fromkeys(str(int(count)) for count in (counts.min(), counts.max()))) if len(counts) else "?"
    caption = (
        f"{where}; equal {setting['match']}. Marks are ratios of samples taken in turn, bars their 95 % intervals over "
        f"processes; the line at 1 is plain. Samples per cell: {n}."
    )
    return Picture(name, title, f"Dot plot, step time over plain's. {joined(described, 60)}", caption, figure)


def _ratio(cell: Mapping[str, Any]) -> str:
    return quoted(*_estimate(cell))


def _estimate(cell: Mapping[str, Any]) -> tuple[float, float, float]:
    return cell["ratio"], cell["ratio_low"], cell["ratio_high"]

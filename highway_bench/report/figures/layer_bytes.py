"""Bytes per layer that are saved for the backward pass, by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from highway_bench.report.figures.dot_rows import DotRow, dot_plot, in_pictures
from highway_bench.report.figures.drawing import crosses, point_with_interval
from highway_bench.report.format import quantity
from highway_bench.report.results import Results
from highway_bench.report.rows import groups
from highway_bench.report.style import Style, of_blocks, styles
from highway_bench.results.schema import Status

SETTING = ("machine", "device", "dtype", "mode", "phase", "match")


@register_figure("layer-bytes", title="bytes per layer", order=60)
def bytes_per_layer(results: Results) -> list[Picture]:
    """One picture per setting: one mark per family and block, on a log axis of bytes."""
    table = results.memory()
    table = table[table["status"] != Status.SKIPPED]
    style = styles(table["block"], results.about)
    pictures: list[Picture] = []
    for setting, part in groups(table, SETTING):
        if part["saved_per_layer"].gt(0).any():
            pictures += [
                _picture(f"bytes-per-layer-{len(pictures) + number}", setting, rows, style, results.about.baseline)
                for number, rows in enumerate(in_pictures(part), start=1)
            ]
    if not pictures:
        raise NothingToShow("bytes per layer need the memory task")
    return pictures


def _picture(
    name: str, setting: Mapping[str, object], rows: Sequence[DotRow], style: Mapping[str, Style], baseline: str
) -> Picture:
    cells = pd.concat([part for _, part in rows])
    style = of_blocks(style, cells["block"])

    def draw(axes: Axes, height: float, block: str, cell: dict[str, Any]) -> str:
        if cell["saved_per_layer"] > 0:
            point_with_interval(axes, cell["saved_per_layer"], height, style[block], clip_on=False)
            return f"{quantity(cell['saved_per_layer'], 'B')} per layer"
        crosses(axes, height, style[block], edge="right")
        return str(cell["status"])

    with settings():
        figure, axes, described = dot_plot(rows, list(style), draw, spacing=0.13)
        log_axis(axes, "x", "B")
        axes.set_xlabel("saved bytes per layer (log)")
        title = _finding(cells)
        head(figure, title)
        failed = not cells["saved_per_layer"].gt(0).all()
        legend(figure, style, [mark("x", "failed")] if failed else [])
    where = ", ".join(str(setting[key]) for key in ("mode", "dtype", "device", "machine") if setting[key])
    sizes = sorted({int(row["batch_size"]) for row, _ in rows if isinstance(row["batch_size"], (int, float))})
    caption = (
        f"{where}; equal {setting['match']}; batches of {', '.join(map(str, sizes)) or '?'}. Exact counts: no interval."
    )
    return Picture(name, title, f"Dot plot, bytes per layer. {joined(described, 60)}", caption, figure)


def _finding(cells: pd.DataFrame) -> str:
    least, most = cells["saved_per_layer"].min(), cells["saved_per_layer"].max()
    return f"Bytes per layer: {quantity(least, 'B')} to {quantity(most, 'B')}"

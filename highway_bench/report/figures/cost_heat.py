"""What connections cost next to pre-norm, as heat tables: the time of a training step, and the bytes a layer saves."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.report.choice.costs import costs_of
from highway_bench.report.figures.base import Panel, register_figure
from highway_bench.report.format import three

ROW: Final = 0.2
"""Inches a connection."""
REACH: Final = 2.0
"""Colours end at this factor on both sides of 1."""


@register_figure(
    "step-time",
    title="training step ÷ pre-norm's",
    caption="Steps timed in turn, one thread on a CPU; below each ratio the larger half of its 95 % interval over "
    "processes. Columns: family and its greatest depth.",
    needs="the throughput task with pre-norm in the same rounds",
    order=50,
    columns=1,
    lines=None,
)
def step_time_ratio(results: Results) -> list[Panel]:
    """One heat table."""
    return _panel(costs_of(results), "step_ratio")


@register_figure(
    "layer-bytes",
    title="bytes saved by a layer ÷ pre-norm's",
    caption="What a layer saves for the backward pass, counted exactly. Columns: family and its greatest depth.",
    needs="the memory task with pre-norm",
    order=60,
    columns=1,
    lines=None,
)
def bytes_ratio(results: Results) -> list[Panel]:
    """One heat table."""
    return _panel(costs_of(results), "bytes_ratio")


def _panel(table: pd.DataFrame, ratio: str) -> list[Panel]:
    known = table[table[ratio].notna()]
    known = known[known["depth"].eq(known.groupby("kind")["depth"].transform("max"))]
    if known["connection"].nunique() < 2:
        return []
    described = [
        f"{cell['connection']} in {cell['kind']} at depth {cell['depth']}: {three(cell[ratio])}"
        for cell in rows_of(known)
    ]
    draw = partial(draw_ratios, table=known, ratio=ratio)
    return [Panel("", draw, {}, described, height=2.0 + ROW * known["connection"].nunique())]


def draw_ratios(axes: Axes, table: pd.DataFrame, ratio: str) -> None:
    """Draw the column ``ratio`` of rows of ``choice.costs.costs_of``, connections by family and depth.

    Where the table has bounds, ``…_low`` and ``…_high``, the larger half of the interval is below the number."""
    columns = list(dict.fromkeys(zip(table["kind"], table["depth"], strict=True)))
    names = list(table.groupby("connection", sort=False)[ratio].median().sort_values().index)
    grid = pd.DataFrame(math.nan, index=names, columns=pd.MultiIndex.from_tuples(columns))
    for cell in rows_of(table):
        grid.loc[cell["connection"], (cell["kind"], cell["depth"])] = cell[ratio]
        at = columns.index((cell["kind"], cell["depth"])) + 0.5, names.index(cell["connection"]) + 0.5
        low, high = cell.get(f"{ratio}_low", math.nan), cell.get(f"{ratio}_high", math.nan)
        half = max(cell[ratio] - low, high - cell[ratio]) if low < high else math.nan
        text = f"{cell[ratio]:.2f}" + (f"\n±{half:.2f}" if half == half else "")
        axes.text(*at, text, ha="center", va="center", fontsize=5, linespacing=0.9)
    axes.pcolormesh(grid.to_numpy(), cmap="RdYlBu_r", norm=LogNorm(1 / REACH, REACH), alpha=0.6, edgecolor="white")
    axes.set_xticks([at + 0.5 for at in range(len(columns))], [f"{kind}, {depth:g}" for kind, depth in columns])
    axes.tick_params(axis="x", labelrotation=90, labelsize=6.5)
    axes.set_yticks([at + 0.5 for at in range(len(names))], names, fontsize=6.5)
    axes.set_ylim(len(names), 0)
    axes.set_xlabel("÷ pre-norm's")
    axes.grid(visible=False)

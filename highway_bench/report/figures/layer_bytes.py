"""Bytes that one layer keeps for the backward pass, family by family."""

from __future__ import annotations

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
from highway_bench.report.format import quantity, three
from highway_bench.report.rows import YARDSTICK, groups, prepared, rows_of
from highway_bench.report.style import looks
from highway_bench.report.tables.memory import memory_table
from highway_bench.results.schema import Status

SETTING = ("machine", "device", "dtype", "mode", "phase", "match")


def bytes_per_layer(rows: pd.DataFrame) -> list[Picture]:
    """A picture a setting: a mark a block in every family, on a log axis of bytes."""
    table = memory_table(prepared(rows))
    table = table[table["status"] != Status.SKIPPED]
    pictures: list[Picture] = []
    for setting, part in groups(table, SETTING):
        if part["saved_per_layer"].gt(0).any():
            places = list(groups(part, ROWS))
            pictures += [
                _picture(f"bytes-per-layer-{len(pictures) + number}", setting, chunk, table)
                for number, chunk in enumerate(in_pictures(places), start=1)
            ]
    if not pictures:
        raise NothingToShow("bytes a layer need the memory task")
    return pictures


def _picture(
    name: str, setting: dict[str, object], places: list[tuple[dict[str, object], pd.DataFrame]], table: pd.DataFrame
) -> Picture:
    look = looks(table["block"])
    names = place_names([place for place, _ in places])
    blocks = [block for block in look if any((part["block"] == block).any() for _, part in places)]
    told: list[str] = []
    failed = False
    with settings():
        figure, (axes,) = panels(1, 1, max(1.6, len(places) * (0.13 * len(blocks) + 0.14)))
        for height, (_, part) in enumerate(places):
            for turn, block in enumerate(blocks):
                at = height + dodge(turn, len(blocks))
                for cell in rows_of(part[part["block"] == block]):
                    kept = cell["saved_per_layer"] > 0
                    failed = failed or not kept
                    axes.plot(
                        cell["saved_per_layer"] if kept else 0.985,
                        at,
                        linestyle="none",
                        color=look[block].colour,
                        marker=look[block].marker if kept else "x",
                        transform=axes.transData if kept else axes.get_yaxis_transform(),
                        clip_on=False,
                    )
                    told.append(
                        f"{names[height]}, {block}: {quantity(cell['saved_per_layer'], 'B')} a layer"
                        if kept
                        else f"{names[height]}, {block}: {cell['status']}"
                    )
        axes.set_yticks(range(len(places)), [in_lines(text) for text in names], linespacing=1.0)
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.grid(False, axis="y")
        for edge in range(1, len(places)):
            axes.axhline(edge - 0.5, color="#e3e3e3", linewidth=0.6)
        log_axis(axes, "x", "B")
        axes.set_xlabel("bytes a layer keeps for backward (log)")
        title = _finding(pd.concat([part for _, part in places]))
        head(figure, title)
        legend(figure, {block: look[block] for block in blocks}, [mark("x", "failed")] if failed else [])
    where = ", ".join(str(setting[key]) for key in ("mode", "dtype", "device", "machine") if setting[key])
    sizes = sorted({int(place["batch_size"]) for place, _ in places if isinstance(place["batch_size"], (int, float))})
    caption = (
        f"{where}; equal {setting['match']}; batches of {', '.join(map(str, sizes)) or '?'}. Exact counts: no interval."
    )
    return Picture(name, title, f"Dot plot, bytes a layer. {joined(told, 60)}", caption, figure)


def _finding(cells: pd.DataFrame) -> str:
    ratios = cells[(cells["block"] != YARDSTICK) & cells["layer_ratio"].gt(0)]
    if ratios.empty:
        least, most = cells["saved_per_layer"].min(), cells["saved_per_layer"].max()
        return f"A layer keeps {quantity(least, 'B')} to {quantity(most, 'B')}"
    logs = ratios.assign(log=np.log(ratios["layer_ratio"])).groupby("block")["log"].mean()
    means = np.exp(logs).sort_values(kind="stable")
    ends = dict.fromkeys([means.index[0], means.index[-1]])
    return "Bytes a layer ÷ plain's, counted exactly: " + ", ".join(f"{end} {three(float(means[end]))}" for end in ends)

"""Activations and gradients layer by layer at the start, relative to where they start."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from highway_bench.report.figures.base import NothingToShow, Picture, head, joined, legend, log_axis, panels, settings
from highway_bench.report.format import counted, listed, three
from highway_bench.report.rows import family_order, groups, prepared
from highway_bench.report.style import Look, looks
from highway_bench.report.tables.labels import contest_name
from highway_bench.report.tables.propagation import HEALTHY, PLACE, profiles, propagation_table

WIDEST: Final = 1e6
"""Sizes beyond this, either way, leave the panel: an explosion of twenty decades would flatten all else."""
LIMIT: Final = 100.0
"""The factor of a verdict."""
PANELS: Final = (
    ("activation", "signal", "activations, x₀ = 1 (log)"),
    ("gradient", "gradient", "gradients, dL/dx_L = 1 (log)"),
)


def signal_by_layer(rows: pd.DataFrame) -> list[Picture]:
    """A picture a family at its deepest, at the init's own weights: a line a block, with a band over seeds."""
    frame = prepared(rows)
    sizes = {metric: _own(profiles(frame, metric)) for metric, _, _ in PANELS}
    if sizes["activation"].empty:
        raise NothingToShow("signal by layer needs the propagation task")
    table, look = propagation_table(frame), looks(frame["label"])
    deepest = sizes["activation"].groupby("family_label")["depth"].transform("max")
    places = groups(sizes["activation"][sizes["activation"]["depth"] == deepest], PLACE)
    order = family_order(sizes["activation"]["family_label"])
    pictures: list[Picture] = []
    for place, _ in sorted(places, key=lambda item: order.index(item[0]["family_label"])):
        parts = {metric: _at(part, place) for metric, part in sizes.items()}
        pictures.append(_picture(f"signal-{len(pictures) + 1}", place, parts, _at(table, place), look))
    return pictures


def _own(table: pd.DataFrame) -> pd.DataFrame:
    """The starts at the init's own weights that were not measured beside first steps, if there are such."""
    for keep in (table["gain"] == 1, ~table["recipe"].str.contains('"steps"')):
        table = table[keep.reindex(table.index)] if keep.any() else table
    return table


def _at(table: pd.DataFrame, place: dict[str, Any]) -> pd.DataFrame:
    return next((part for other, part in groups(table, PLACE) if other == place), table.iloc[:0])


def _picture(
    name: str, place: dict[str, Any], sizes: dict[str, pd.DataFrame], verdicts: pd.DataFrame, look: dict[str, Look]
) -> Picture:
    blocks = [block for block in look if (verdicts["block"] == block).any()]
    told: list[str] = []
    with settings():
        figure, axes = panels(2, 1, 2.1, sharex=True)
        for panel, (metric, way, label) in zip(axes, PANELS, strict=True):
            panel.axhspan(1 / LIMIT, LIMIT, color="#f0f0f0", zorder=0)
            for block in blocks:
                told += _line(panel, sizes[metric][sizes[metric]["block"] == block], look[block], f"{way}, {block}")
            log_axis(panel, "y")
            panel.set_ylabel(label)
        _limits(axes, sizes)
        axes[1].set_xlabel("layer")
        axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
        title = f"{place['family_label']}, depth {place['depth']}: {_finding(verdicts)}"
        head(figure, title)
        legend(figure, {block: look[block] for block in blocks}, lines=True)
    seeds = sorted(set(verdicts["n"]))
    n = counted(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    caption = (
        f"{contest_name(place)}, equal {place['match']}, plain's width {place['nominal_width']}, {place['dtype']}; "
        f"before training. RMS of x_l and of dL/dx_l; medians over n = {n}, bands from least to largest. Shaded: "
        "within a factor of 100 of the start, which is at the left for activations and at the right for gradients."
    )
    return Picture(name, title, f"Sizes by layer. {joined(told, 60)}", caption, figure)


def _line(panel: Axes, points: pd.DataFrame, style: Look, what: str) -> list[str]:
    if points.empty:
        return [f"{what}: no finite size"]
    panel.fill_between(points["layer"], points["low"], points["high"], color=style.colour, alpha=0.18, linewidth=0)
    panel.plot(
        points["layer"], points["middle"], color=style.colour, marker=style.marker, linestyle=style.dash, markersize=4
    )
    ends = [f"{three(end['middle'])} at layer {end['layer']:g}" for end in (points.iloc[0], points.iloc[-1])]
    return [f"{what}: {', '.join(ends)}"]


def _limits(axes: list[Axes], sizes: dict[str, pd.DataFrame]) -> None:
    """The verdict's limits are always seen, and nothing beyond ``WIDEST``."""
    for panel, (metric, _, _) in zip(axes, PANELS, strict=True):
        least, most = sizes[metric]["low"].min(), sizes[metric]["high"].max()
        panel.set_ylim(max(1 / WIDEST, min(least, 0.3 / LIMIT)), min(WIDEST, max(most, 3 * LIMIT)))
        log_axis(panel, "y")


def _finding(verdicts: pd.DataFrame) -> str:
    """Which blocks keep signal and gradient, and what becomes of them under the others."""
    keep = list(verdicts.loc[verdicts["signal"].eq(HEALTHY) & verdicts["gradient"].eq(HEALTHY), "block"])
    if len(keep) == len(verdicts):
        return "signal and gradient keep their size under every block"
    lost = []
    for way in ("signal", "gradient"):
        for word in dict.fromkeys(verdicts.loc[verdicts[way] != HEALTHY, way]):
            named = list(verdicts.loc[verdicts[way] == word, "block"])
            lost.append(f"{way} {word} under {listed(named)}")
    return "; ".join(lost)

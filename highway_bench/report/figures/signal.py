"""Sizes of activations and gradients by layer in initialised networks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    legend,
    log_axis,
    panels,
    register_figure,
    settings,
)
from highway_bench.report.figures.drawing import line_with_band
from highway_bench.report.format import listed, seeds_text, three
from highway_bench.report.labels import contest_name
from highway_bench.report.results import Results
from highway_bench.report.rows import groups
from highway_bench.report.style import Style, of_blocks, styles
from highway_bench.report.tables.propagation import IN_RANGE, SETTING

THICKEST, THINNEST = 3.2, 1.2
"""Widths of the first line and of the last, which is drawn on top."""
LIMIT: Final = 100.0
"""The factor beyond which a size vanishes or explodes."""
PANELS: Final = (
    ("activation", "signal", "activations, x₀ = 1 (log)"),
    ("gradient", "gradient", "gradients, dL/dx_L = 1 (log)"),
)


@register_figure("signal-by-layer", title="signal by layer", order=80)
def signal_by_layer(results: Results) -> list[Picture]:
    """One picture per family at its greatest depth, with unscaled weights: one line per block, a band over seeds."""
    sizes = {metric: _own(results.layer_sizes(metric)) for metric, _, _ in PANELS}
    if sizes["activation"].empty:
        raise NothingToShow("signal by layer needs the propagation task")
    table, style = results.propagation(), styles(results.rows["label"], results.about)
    deepest = sizes["activation"].groupby("family_label")["depth"].transform("max")
    starts = groups(sizes["activation"][sizes["activation"]["depth"] == deepest], SETTING)
    order = results.about.family_order(sizes["activation"]["family_label"])
    pictures: list[Picture] = []
    for setting, _ in sorted(starts, key=lambda item: order.index(item[0]["family_label"])):
        parts = {metric: _at(part, setting) for metric, part in sizes.items()}
        pictures.append(_picture(f"signal-{len(pictures) + 1}", setting, parts, _at(table, setting), style))
    return pictures


def _own(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of networks with unscaled weights and without training, if there are any."""
    for preferred in (table["gain"] == 1, ~table["recipe"].str.contains('"steps"')):
        table = table[preferred.reindex(table.index)] if preferred.any() else table
    return table


def _at(table: pd.DataFrame, setting: dict[str, Any]) -> pd.DataFrame:
    return next((part for other, part in groups(table, SETTING) if other == setting), table.iloc[:0])


def _picture(
    name: str, setting: dict[str, Any], sizes: dict[str, pd.DataFrame], verdicts: pd.DataFrame, style: dict[str, Style]
) -> Picture:
    style = of_blocks(style, verdicts["block"])
    alt: list[str] = []
    with settings():
        figure, axes = panels(2, 1, 2.1, sharex=True)
        for panel, (metric, way, label) in zip(axes, PANELS, strict=True):
            panel.axhspan(1 / LIMIT, LIMIT, color="#f0f0f0", zorder=0)
            for number, block in enumerate(style):
                width = THICKEST - (THICKEST - THINNEST) * number / max(len(style) - 1, 1)  # none hides another
                own = sizes[metric][sizes[metric]["block"] == block]
                alt += _line(panel, own, style[block], f"{way}, {block}", width)
            log_axis(panel, "y")
            panel.set_ylabel(label)
        _limits(axes, sizes)
        axes[1].set_xlabel("layer")
        axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
        title = f"{setting['family_label']}, depth {setting['depth']}: {_finding(verdicts)}"
        head(figure, title)
        legend(figure, style, lines=True)
    caption = (
        f"{contest_name(setting)}, equal {setting['match']}, plain's width {setting['nominal_width']}, "
        f"{setting['dtype']}; before training. RMS of x_l and of dL/dx_l; medians over n = "
        f"{seeds_text(verdicts['n'])}, bands from least to largest. Shaded: within a factor of 100 of x₀ (activations, "
        "above) and of dL/dx_L (gradients, below)."
    )
    return Picture(name, title, f"Sizes by layer. {joined(alt, 60)}", caption, figure)


def _line(panel: Axes, points: pd.DataFrame, style: Style, what: str, width: float) -> list[str]:
    if points.empty:
        return [f"{what}: no finite size"]
    line_with_band(
        panel, points["layer"], points["middle"], style, points["low"], points["high"], markersize=4, linewidth=width
    )
    texts = [f"{three(point['middle'])} at layer {point['layer']:g}" for point in (points.iloc[0], points.iloc[-1])]
    return [f"{what}: {', '.join(texts)}"]


def _limits(axes: list[Axes], sizes: dict[str, pd.DataFrame]) -> None:
    """Set the limits of the axes: all sizes and the limits of the verdict are in view."""
    for panel, (metric, _, _) in zip(axes, PANELS, strict=True):
        seen = sizes[metric][["low", "high"]].to_numpy().ravel()
        seen = seen[np.isfinite(seen) & (seen > 0)]  # a logarithmic axis has no place for others
        panel.set_ylim(np.min(seen / 2, initial=0.3 / LIMIT), np.max(seen * 2, initial=3 * LIMIT))
        log_axis(panel, "y")


def _finding(verdicts: pd.DataFrame) -> str:
    """The verdicts on signal and gradient, and the blocks that have them."""
    if verdicts["signal"].eq(IN_RANGE).all() and verdicts["gradient"].eq(IN_RANGE).all():
        return "signal and gradient stay in range under every connection"
    lost = []
    for way in ("signal", "gradient"):
        for word in dict.fromkeys(verdicts.loc[verdicts[way] != IN_RANGE, way]):
            named = list(verdicts.loc[verdicts[way] == word, "block"])
            lost.append(f"{way} {word} under {listed(named)}")
    return "; ".join(lost)

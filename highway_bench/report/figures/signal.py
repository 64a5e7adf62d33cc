"""Sizes of activations and gradients by layer in initialised networks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from highway_bench.frames.propagation import SETTING
from highway_bench.frames.results import Results
from highway_bench.frames.rows import groups
from highway_bench.report.figures.base import Panel, log_axis, register_figure
from highway_bench.report.figures.drawing import line_with_band
from highway_bench.report.format import three
from highway_bench.report.style import Style, of_blocks, styles

FAMILIES: Final = 2
"""The most families that are drawn."""
THICKEST, THINNEST = 3.2, 1.2
"""Widths of the first line and of the last, which is drawn on top."""
LIMIT: Final = 100.0
"""The factor beyond which a size vanishes or explodes."""
SIZES: Final = {"activation": "activations ÷ x₀", "gradient": "gradients ÷ dL/dx_L"}


@register_figure(
    "signal-by-layer",
    title="signal and gradient before training",
    caption="RMS of x_l and of dL/dx_l; medians over seeds, bands from least to largest. Shaded: within a factor of "
    "100 of the first layer's input, or of the last layer's gradient.",
    needs="the propagation task",
    order=80,
)
def signal_by_layer(results: Results) -> list[Panel]:
    """Two panels for each of the first families, at its greatest depth, with unscaled weights."""
    sizes = {metric: _own(results.layer_sizes(metric)) for metric in SIZES}
    style = styles(results.rows["label"], results.about)
    activations = sizes["activation"]
    deepest = activations.groupby("family_label")["depth"].transform("max")
    found = [setting for setting, _ in groups(activations[activations["depth"] == deepest], SETTING)]
    order = results.about.family_order(activations["family_label"])
    panels = []
    for setting in sorted(found, key=lambda one: order.index(one["family_label"]))[:FAMILIES]:
        for metric, label in SIZES.items():
            part = _at(sizes[metric], setting)
            own = of_blocks(style, part["block"])
            ends = part.sort_values("layer").groupby("block", sort=False)["middle"].agg(["first", "last"])
            described = [f"{block}: {three(first)} to {three(last)}" for block, first, last in ends.itertuples()]
            title = f"{setting['family_label']}, {setting['depth']} layers"
            draw = partial(draw_sizes, sizes=part, styles=own, label=f"{label} (log)")
            panels.append(Panel(title, draw, own, described))
    return panels


def draw_sizes(axes: Axes, sizes: pd.DataFrame, styles: Mapping[str, Style], label: str) -> None:
    """Draw one line per connection: ``sizes`` are rows of ``Results.layer_sizes`` of one setting."""
    axes.axhspan(1 / LIMIT, LIMIT, color="#f0f0f0", zorder=0)
    for number, (block, style) in enumerate(styles.items()):
        width = THICKEST - (THICKEST - THINNEST) * number / max(len(styles) - 1, 1)  # none hides another
        own = sizes[sizes["block"] == block]
        bounds = own["low"], own["high"]
        line_with_band(axes, own["layer"], own["middle"], style, *bounds, markersize=4, linewidth=width)
    seen = sizes[["low", "high"]].to_numpy().ravel()
    seen = seen[np.isfinite(seen) & (seen > 0)]  # a logarithmic axis has no place for others
    axes.set_ylim(np.min(seen / 2, initial=0.3 / LIMIT), np.max(seen * 2, initial=3 * LIMIT))
    log_axis(axes, "y")
    axes.set_ylabel(label)
    axes.set_xlabel("layer")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _own(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of networks with unscaled weights and without training, if there are any."""
    for preferred in (table["gain"] == 1, ~table["recipe"].str.contains('"steps"')):
        table = table[preferred.reindex(table.index)] if preferred.any() else table
    return table


def _at(table: pd.DataFrame, setting: dict[str, Any]) -> pd.DataFrame:
    return next((part for other, part in groups(table, SETTING) if other == setting), table.iloc[:0])

"""Figures, one kind a module: each takes rows and gives pictures, or ``NothingToShow`` with the reason."""

from typing import Final

from highway_bench.report.figures.base import Draw, NothingToShow, Picture
from highway_bench.report.figures.curves import loss_curves
from highway_bench.report.figures.gates import gates_by_layer, lesion_by_layer
from highway_bench.report.figures.layer_bytes import bytes_per_layer
from highway_bench.report.figures.loss_depth import loss_by_depth
from highway_bench.report.figures.propagation import signal_by_layer
from highway_bench.report.figures.quality import quality_against_cost
from highway_bench.report.figures.rate_map import rate_map
from highway_bench.report.figures.step_time import step_time_ratio
from highway_bench.report.figures.success import success_rate
from highway_bench.report.figures.svg import svg_text

FIGURES: Final[dict[str, Draw]] = {
    "success by depth": success_rate,
    "depth × rate map": rate_map,
    "loss by depth": loss_by_depth,
    "quality against time and memory": quality_against_cost,
    "step time over plain's": step_time_ratio,
    "bytes a layer": bytes_per_layer,
    "loss curves without verdict": loss_curves,
    "signal by layer": signal_by_layer,
}
"""Every kind of figure, in the order of the page."""

INSIDE: Final[dict[str, Draw]] = {"gates by layer": gates_by_layer, "lesion by layer": lesion_by_layer}
"""Figures that are folded away with the tables of trained networks."""

__all__ = [
    "FIGURES",
    "INSIDE",
    "Draw",
    "NothingToShow",
    "Picture",
    "bytes_per_layer",
    "gates_by_layer",
    "lesion_by_layer",
    "loss_by_depth",
    "loss_curves",
    "quality_against_cost",
    "rate_map",
    "signal_by_layer",
    "step_time_ratio",
    "success_rate",
    "svg_text",
]

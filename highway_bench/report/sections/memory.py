"""Memory: bytes of weights, gradients, optimiser state and saved activations."""

from __future__ import annotations

from highway_bench.report import columns as column
from highway_bench.report.columns import Shown
from highway_bench.report.results import Results
from highway_bench.report.sections.base import (
    MOST,
    ReportSection,
    network_columns,
    register_section,
    shape_columns,
    status_columns,
)
from highway_bench.report.tables.memory import METRICS


@register_section
class MemorySection(ReportSection):
    """One row per cell of the memory task."""

    name = "memory"
    title = "Memory"
    absent = "no memory was counted"
    order = 20
    metrics = METRICS

    def tables(self, results: Results) -> list[Shown]:
        columns = [
            *network_columns(),
            column.number("parameters", "weights", "B"),
            column.number("gradients", "gradients", "B"),
            column.number("optimiser_state", "optimiser state", "B"),
            column.number("saved_activations", "saved activations", "B"),
            column.number("saved_per_layer", "saved per layer", "B"),
            column.number("peak", "peak", "B"),
            column.exact_ratio("layer_ratio", "per layer ÷ plain's", "bytes per layer over plain's"),
            *shape_columns(),
            *status_columns(),
        ]
        return [column.shown("memory", self.title, results.memory(), columns, most=MOST)]

"""Memory: bytes of weights, gradients, optimiser state and saved activations."""

from __future__ import annotations

from highway_bench.report import columns as column
from highway_bench.report.columns import Shown
from highway_bench.report.results import Results
from highway_bench.report.sections.base import (
    MOST,
    ReportSection,
    metric_column,
    network_columns,
    register_section,
    shape_columns,
    status_columns,
)
from highway_bench.report.tables.memory import BYTES, METRICS


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
            *(metric_column(results, self.name, metric, "B") for metric in BYTES),
            column.exact_ratio("layer_ratio", "per layer ÷ plain's", "bytes per layer over plain's"),
            *shape_columns(results, self.name),
            *status_columns(),
        ]
        return [column.shown("memory", self.title, results.memory(), columns, most=MOST)]

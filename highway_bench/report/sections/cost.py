"""Exact counts: parameters and multiply-adds, one row per network."""

from __future__ import annotations

from highway_bench.report import columns as column
from highway_bench.report.columns import Shown
from highway_bench.report.results import Results
from highway_bench.report.sections.base import MOST, ReportSection, register_section, status_columns
from highway_bench.report.tables.counts import METRICS


@register_section
class CostSection(ReportSection):
    """One row per network of the cost task."""

    name = "cost"
    title = "Counts"
    absent = "no multiply-adds were counted"
    order = 60
    metrics = METRICS
    heading = "Parameters and multiply-adds"
    note = "Parameters, and multiply-adds of the forward pass of one item. Both follow from shapes, on any machine."

    def tables(self, results: Results) -> list[Shown]:
        labels = {metric: results.about.metric(self.name, metric) for metric in METRICS}
        columns = [
            column.words("family_label", "family"),
            column.words("dataset", "data"),
            column.whole("depth", "depth"),
            column.words("block", "block"),
            *(column.whole(metric, label.heading, label.hint) for metric, label in labels.items()),
            column.exact_ratio("adds_ratio", "÷ plain's", "multiply-adds over plain's"),
            column.whole("width", "width"),
            column.whole("seq_len", "length"),
            column.words("match", "equal"),
            *status_columns(),
        ]
        note = "Exact counts: no interval. Multiply-adds do not include biases, norms and non-linearities."
        title = "Parameters and multiply-adds"
        return [column.shown("counts", title, results.counts(), columns, note=note, most=MOST)]

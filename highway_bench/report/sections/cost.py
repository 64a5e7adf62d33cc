"""Exact counts as they are printed: parameters and multiply-adds, a row a network."""

from __future__ import annotations

from highway_bench.report import columns as column
from highway_bench.report.columns import Shown
from highway_bench.report.results import Results
from highway_bench.report.sections.base import MOST, ReportSection, register_section, status_columns
from highway_bench.report.tables.counts import METRICS


@register_section
class CostSection(ReportSection):
    """A row a network that was counted."""

    name = "cost"
    title = "Counts"
    absent = "no multiply-adds were counted"
    order = 60
    metrics = METRICS
    heading = "What networks hold and compute"
    anchor = "cost"
    menu = "Counts"
    note = "Parameters, and multiply-adds of one item forward: counted from shapes, so the same on every machine."
    fold = "Parameters and multiply-adds, by family and block"

    def tables(self, results: Results) -> list[Shown]:
        columns = [
            column.words("family_label", "family"),
            column.words("dataset", "data"),
            column.whole("depth", "depth"),
            column.words("block", "block"),
            column.whole("parameters", "parameters"),
            column.whole("multiply_adds", "multiply-adds", "of one item forward"),
            column.exact_ratio("adds_ratio", "÷ plain's", "multiply-adds over plain's"),
            column.whole("width", "width"),
            column.whole("seq_len", "length"),
            column.words("match", "equal"),
            *status_columns(),
        ]
        note = "Exact counts: no interval. Biases, norms and non-linearities are in no multiply-add."
        title = "Parameters and multiply-adds"
        return [column.shown("counts", title, results.counts(), columns, note=note, most=MOST)]

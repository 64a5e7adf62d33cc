"""Training: one row per depth over its seeds, and one row per run."""

from __future__ import annotations

from highway_bench.report import columns as column
from highway_bench.report.columns import Record, Shown
from highway_bench.report.format import NONE, between
from highway_bench.report.labels import contest_text
from highway_bench.report.results import Results
from highway_bench.report.sections.base import (
    MOST,
    ReportSection,
    metric_column,
    network_columns,
    register_section,
    status_columns,
)
from highway_bench.report.tables.trainability import METRICS, gives_verdicts


@register_section
class TrainabilitySection(ReportSection):
    """Verdicts by depth, and every run."""

    name = "trainability"
    title = "Trainability"
    absent = "nothing was trained"
    order = 30
    metrics = METRICS

    def tables(self, results: Results) -> list[Shown]:
        def heading(metric: str) -> str:
            return results.about.metric(self.name, metric).heading

        def number(metric: str, unit: str = "1") -> column.Column:
            return metric_column(results, self.name, metric, unit)

        accuracies = [
            number("train_accuracy"),
            column.number("test_loss", heading("test_loss")),  # a cross-entropy or a squared error: no unit
            number("test_bits", "bit"),
            number("test_accuracy"),
        ]
        by_depth = [
            *network_columns(),
            column.words("dataset", "data"),
            column.words("verdict", "verdict"),
            column.computed("seeds that train", _k_of_n, "successful runs of all runs, Wilson 95 % interval"),
            column.whole("diverged", "diverged"),
            column.whole("stalled", "stalled"),
            column.whole("unfinished", "unfinished"),
            column.spread("final_loss", f"{heading('final_loss')} [95 %]", "loss_low", "loss_high", "1"),
            column.reached("steps_to_threshold", heading("steps_to_threshold"), "1"),
            column.reached("seconds_to_threshold", heading("seconds_to_threshold"), "s"),
            number("rate"),
            number("step_seconds", "s"),
            *accuracies,
            column.whole("width", "width"),
            column.whole("params", "parameters"),
            column.computed("contest", contest_text, is_number=False),
            column.words("messages", "remark"),
        ]
        single = [
            *network_columns(),
            column.words("dataset", "data"),
            column.whole("seed", "seed"),
            column.number("final_loss", heading("final_loss")),
            column.number("success_loss", heading("success_loss")),
            column.whole("success", heading("success")),
            column.whole("steps_to_threshold", heading("steps_to_threshold")),
            number("seconds_to_threshold", "s"),
            number("rate"),
            number("step_seconds", "s"),
            column.whole("together", heading("together"), "networks trained as one; each has its share of the time"),
            *accuracies,
            number("budget_mismatch"),
            *status_columns(),
        ]
        depths, runs = results.trainability(), results.training_runs()
        return [
            column.shown("trainability", f"{self.title}, one row per depth", depths, by_depth, most=MOST),
            column.shown("runs", f"{self.title}, one row per run", runs, single, most=MOST),
        ]


def _k_of_n(record: Record) -> str:
    if not record["n"]:
        return NONE
    interval = between(record["rate_low"], record["rate_high"]) if gives_verdicts(record["recipe"]) else ""
    return f"{record['k']} of {record['n']} {interval}".strip()

"""Inside trained networks: gates, the change of the stream, and lesions."""

from __future__ import annotations

from highway_bench.report import columns as column
from highway_bench.report.columns import Record, Shown
from highway_bench.report.format import NONE, quantity
from highway_bench.report.labels import contest_text, data_name, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups
from highway_bench.report.sections.base import ReportSection, metric_column, register_section

BRIEF = (
    "intact_loss",
    "intact_error",
    "gate_bias_start",
    "gate_bias_end",
    "gate_activity",
    "gates_shut",
    "gates_open_one",
    "gates_open_average",
    "gates_open_some",
    "gates_full",
    "gate_class_spread",
    "sparsity_one",
    "sparsity_average",
    "stream_change",
)
"""The metrics in the table of a contest, in this order."""


@register_section
class GatesSection(ReportSection):
    """One table per contest, with one row per block and depth."""

    name = "gates"
    title = "Trained networks"
    absent = "no trained network was analysed"
    order = 50
    heading = "Inside trained networks"
    note = (
        "The gates of trained networks, the change of the stream by each layer, and the loss of a network without one "
        "of its layers. These values explain results; they do not rank blocks."
    )

    def tables(self, results: Results) -> list[Shown]:
        columns = [
            column.whole("depth", "depth"),
            column.words("block", "block"),
            column.computed("seeds that train", lambda record: f"{record['k']} of {record['n']}"),
            *(metric_column(results, self.name, metric, _unit(metric)) for metric in BRIEF),
            column.computed(
                "costliest layer", _costliest, "the layer whose removal raises the loss most, and the rise"
            ),
        ]
        tables: list[Shown] = []
        contests = list(groups(results.gates(), CONTEST))
        for contest, part in contests:
            note = f"{contest_text(contest)}. Means over networks, and over layers for metrics by layer."
            name = title_of(contest, [other for other, _ in contests], data_name)
            title = f"{name}: inside trained networks"
            tables.append(column.shown(f"inside-{len(tables) + 1}", title, part, columns, note=note))
        return tables


def _unit(metric: str) -> str:
    """The unit of ``metric``, for runs that do not describe it."""
    return "nat" if metric.endswith("_loss") else "1"


def _costliest(record: Record) -> str:
    most = record["lesion_most"]
    if column.missing(most):
        return NONE
    return f"{record['lesion_at']:.0f}: {quantity(most, 'nat')}"

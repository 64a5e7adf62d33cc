"""Step times, and the measured rates of the machines."""

from __future__ import annotations

from highway_bench.cell import MODES
from highway_bench.report import columns as column
from highway_bench.report.columns import Shown
from highway_bench.report.ratio import quoted
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
from highway_bench.report.tables.step_times import METRICS, RATES


@register_section
class StepTimeSection(ReportSection):
    """One row per timed cell."""

    name = "throughput"
    title = "Step times"
    absent = "no step was timed"
    order = 10
    metrics = (*METRICS, *RATES)

    def tables(self, results: Results) -> list[Shown]:
        about = results.about

        def heading(metric: str) -> str:
            return about.metric(self.name, metric).heading

        def number(metric: str, unit: str) -> column.Column:
            return metric_column(results, self.name, metric, unit)

        columns = [
            *network_columns(),
            column.words("phase", "phase"),
            column.words("mode", "mode"),
            column.spread("step_time", f"{heading('step_time')} [p10, p90]", "step_low", "step_high", "s"),
            column.ratio("ratio", f"{heading('plain_ratio')} [95 %]"),
            column.ratio("yardstick_ratio", f"{heading('yardstick_ratio')} [95 %]", bounds="yardstick_ratio"),
            number("step_time_p99", "s"),
            column.whole("n", "samples"),
            column.percent("waited", heading("waited")),
            column.whole("disturbed", heading("disturbed")),
            column.spread("gpu_time", f"{heading('gpu_time')} [p10, p90]", "gpu_time_low", "gpu_time_high", "s"),
            column.computed(f"{heading('gpu_ratio')} [95 %]", gpu_ratio),
            column.spread(
                "clock_rate", f"{heading('clock_rate')} [p10, p90]", "clock_rate_low", "clock_rate_high", "Hz"
            ),
            column.whole("capped", heading("capped")),
            number("throughput", "sample/s"),
            number("flop_rate", "FLOP/s"),
            column.percents(
                "roofline_share",
                f"{heading('roofline_share')} [p10, p90]",
                "roofline_share_low",
                "roofline_share_high",
            ),
            column.spread("slowdown", f"{heading('slowdown')} [p10, p90]", "slowdown_low", "slowdown_high", "1"),
            number("first_step", "s"),
            number("compile_time", "s"),
            column.whole("graph_breaks", heading("graph_breaks")),
            column.whole("threads", "threads"),
            column.machine(results.rows),
            *shape_columns(results, self.name),
            *status_columns(),
        ]
        return [column.shown("throughput", self.title, results.step_times(), columns, most=MOST), mode_table(results)]


def gpu_ratio(record: column.Record) -> str:
    """The ratio of GPU times in the notation of measured ratios; a dash for a cell of a CPU."""
    gap = "" if column.missing(record["gpu_time"]) else str(record["ratio_gap"] or "")
    return quoted(record["gpu_ratio"], record["gpu_ratio_low"], record["gpu_ratio_high"], gap)


def mode_table(results: Results) -> Shown:
    """Each block in its fastest mode, next to its times in all modes."""
    columns = [
        *network_columns(),
        column.words("phase", "phase"),
        *(column.number(mode, mode, "s") for mode in MODES),
        column.words("best_mode", "fastest"),
        column.ratio("ratio", "fastest ÷ plain's fastest [95 %]", "both in their own fastest mode, timed in turn"),
        column.whole("nominal_width", "plain's width"),
        column.whole("batch_size", "batch"),
        column.words("dtype", "dtype"),
        column.words("device", "device"),
        column.machine(results.rows),
    ]
    note = "Medians of step times. The table of step times compares blocks in one mode."
    return column.shown("modes", "Execution modes", results.best_modes(), columns, note=note, most=MOST)


def rate_table(results: Results) -> Shown:
    """The measured rates of each machine, from which the floors of step times follow."""
    columns = [
        column.machine(results.rows),
        column.words("device", "device"),
        column.words("dtype", "dtype"),
        column.whole("threads", "threads"),
    ]
    for name in RATES:
        rate = results.about.metric(StepTimeSection.name, name, RATES[name])
        columns.append(column.spread(name, f"{rate.heading} [least, most]", f"{name}_low", f"{name}_high", rate.unit))
    columns += [column.whole("n", "measurements", "one per process")]
    title, note = "Measured rates of the machines", "Medians. The floors of step times follow from these rates."
    return column.shown("rates", title, results.device_rates(), columns, note=note)

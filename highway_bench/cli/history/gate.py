"""``highway-bench history gate``: fail if something regressed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json, print_table
from highway_bench.cli.history.options import Device, MachineName, Root
from highway_bench.errors import HighwayBenchError

if TYPE_CHECKING:
    from highway_bench.history.gate import GateReport
    from highway_bench.history.regressions import Regression


class Regressed(HighwayBenchError):
    """A series regressed, or lost its value at HEAD."""


def gate(
    window: Annotated[int, typer.Option(help="Measured commits of a machine that count as recent.")] = 10,
    measure: Annotated[bool, typer.Option("--measure", help="Measure this commit first, quickly.")] = False,
    confirm: Annotated[bool, typer.Option(help="Measure again what seems to have regressed here.")] = True,
    device: Device = None,
    machine: MachineName = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Fail if something regressed in recent commits, on any machine; print what regressed, and since when.

    Status 0 no regression, 1 a regression or a series that lost its value at HEAD, 2 bad input, 3 nothing measured at
    HEAD or nothing before it, 4 asv failed.
    """
    from dataclasses import asdict

    from highway_bench.history import Paths
    from highway_bench.history.gate import check
    from highway_bench.history.gate import gate as judge
    from highway_bench.history.machine import busy, this_machine
    from highway_bench.history.measure import measure_here

    paths = Paths.of(root)
    check(paths, window)
    here = this_machine(device, machine) if measure or confirm else None
    warning = busy() if here else None
    if measure and here:
        measure_here(paths, here)  # failures are left to the gate
    report = judge(paths, here if confirm else None, window=window)
    report.lines += [warning] if warning else []
    if json:
        print_json(asdict(report))
    else:
        print_report(report)
    if report.regressions or report.lost:
        raise Regressed(f"{len(report.regressions)} series regressed, {len(report.lost)} without a value at HEAD")


def print_report(report: GateReport) -> None:
    """Print the gate's report as tables."""
    for line in report.lines:
        typer.echo(line)
    heads = ["series", "machine", "unit", "before", "after", "change", "tolerated", "commit", "last good", "remark"]
    for title, rows in (
        ("Regressions", report.regressions),
        ("Not confirmed by a re-run: no regressions", report.dismissed),
    ):
        if rows:
            print_table(title, heads, [table_row(one) for one in rows])
    if report.lost:
        print_table(
            "Without a value at HEAD",
            ["series", "machine", "reason"],
            [[one.series, one.machine, one.reason] for one in report.lost],
        )
    if report.limits:
        print_table(
            "Rises that would be flagged at the next point",
            ["benchmark", "machine", "series", "least", "median", "most"],
            [
                [
                    one.benchmark,
                    one.machine,
                    one.series,
                    *(rise_text(one.benchmark, share) for share in (one.least, one.median, one.most)),
                ]
                for one in report.limits
            ],
            note="least, median and most are over the benchmark's series, each of which has its own noise",
        )
    if not report.regressions and not report.lost:
        typer.echo(f"no regression in {report.series:,} series of {', '.join(report.machines)}")


def rise_text(benchmark: str, share: float) -> str:
    """A tolerated rise as text."""
    from highway_bench.history.noise import is_loss

    return "any rise" if not share else f"{share:.2f} decades" if is_loss(benchmark) else f"{100 * share:.0f} %"


def table_row(regression: Regression) -> list[str]:
    """A regression as a row of ``print_report``'s table."""
    from highway_bench.report.ratio import quoted

    remarks = [regression.remark]
    if (ratio := regression.ratio_to_good) is not None:
        remarks.append(f"÷ {regression.good[:8]}, in turn: {quoted(ratio.value, ratio.low, ratio.high)}")
    return [
        regression.series,
        regression.machine,
        regression.unit,
        f"{regression.before:.4g}",
        f"{regression.after:.4g}",
        regression.change,
        f"{regression.tolerated:.3g}",
        regression.commit[:8],
        regression.good[:8],
        "; ".join(filter(None, remarks)),
    ]

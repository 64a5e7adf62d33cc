"""``highway-bench history gate``: fail if something regressed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import Printed, bounds, show, text_table
from highway_bench.cli.history.compare import Undecided
from highway_bench.cli.history.options import Device, MachineName, Root
from highway_bench.errors import HighwayBenchError
from highway_bench.history import WINDOW
from highway_bench.terminal import finite

if TYPE_CHECKING:
    from highway_bench.history.gate import GateFinding, GateReport
    from highway_bench.history.lines import TrackedSeries


class Regressed(HighwayBenchError):
    """A series regressed, or lost its value at HEAD."""


def gate(
    window: Annotated[int, typer.Option(help="How many of a machine's newest measured commits are searched.")] = WINDOW,
    measure: Annotated[
        bool, typer.Option("--measure", help="First measure a quick point of HEAD: two minutes.")
    ] = False,
    confirm: Annotated[
        bool, typer.Option(help="Where a time rose, time HEAD and the last good commit in turn.")
    ] = True,
    device: Device = None,
    machine: MachineName = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Fail if a block got slower, larger or trains worse in recent commits; print since when.

    Judges every machine that has a point of HEAD; only this machine's times can be timed again. A verdict is stored
    with the points, and holds for later commits. On a machine that has
    no point to compare HEAD with, the times of HEAD and of the last commit with a point are taken in turn.

    Status 0 no regression, 1 a regression, a series that lost its value at HEAD, or a commit that does not import, 2
    bad input, 3 nothing measured at HEAD or before it, 4 asv failed or a commit cannot be built, 5 undecided.
    """
    from highway_bench.history.gate import check
    from highway_bench.history.gate import gate as judge
    from highway_bench.history.machine import this_machine
    from highway_bench.history.measure import measure_here
    from highway_bench.history.paths import Paths
    from highway_bench.history.verdicts import GateVerdict

    paths = Paths.of(root)
    check(paths, window)
    here = this_machine(device, machine) if measure or confirm else None
    if measure and here:
        measure_here(paths, here)  # failures are left to the gate
    report = judge(paths, here if confirm else None, window=window)
    show(as_dict(report), report_parts(report), as_json=json)
    regressed, undecided = report.of(GateVerdict.REGRESSION), report.of(GateVerdict.UNDECIDED)
    if regressed or report.lost:
        raise Regressed(f"{len(regressed)} series regressed, {len(report.lost)} without a value at HEAD")
    if report.not_built is not None:
        raise report.not_built
    if undecided:
        rise = undecided[0].rise
        cell = rise.of.cell
        raise Undecided(
            f"{len(undecided)} of {report.judged:,} series undecided: run the gate again on an idle machine, or time "
            f"one longer: highway-bench history compare {rise.good[:8]} HEAD --block {cell.block} --family "
            f"{cell.family} --depth {cell.depth}"
        )


def as_dict(report: GateReport) -> dict[str, object]:
    """The report's series with their verdicts, as plain values."""
    return {
        "findings": [
            {
                "verdict": one.verdict,
                **_of(one.rise.of),
                **finite({"before": one.rise.before, "after": one.rise.after}),
                "commit": one.rise.commit,
                "good": one.rise.good,
                "trend": one.rise.trend,
                "ratio": one.ratio and bounds(one.ratio),
                "waited": one.waited,
                "remark": one.remark,
            }
            for one in report.findings
        ],
        "lost": [{**_of(one.of), "reason": one.reason} for one in report.lost],
        "judged": report.judged,
        "machines": report.machines,
        "lines": report.lines,
        "load": report.load,
        "culprits": [asdict(one) for one in report.culprits],
    }


def _of(followed: TrackedSeries) -> dict[str, object]:
    return {"series": followed.series.name, **followed.cell._asdict(), "machine": followed.machine}


def report_parts(report: GateReport) -> Iterator[Printed]:
    """The gate's report: a line a series."""
    from highway_bench.history.verdicts import GateVerdict

    yield from report.lines
    if report.findings:
        yield text_table(
            "Series that seem to have regressed",
            ["verdict", "series", "cell", "machine", "before", "now", "since", "step ÷ last good's", "remark"],
            [table_row(one) for one in report.findings],
            note="before and now: stored points; times are judged by the step's time at HEAD over that at the last "
            "good commit, both timed in turn, with the interval that decides" + (report.load and f"; {report.load}"),
        )
    for one in report.culprits:
        among = ", or an unmeasured commit before it" * (one.commits > 1)
        yield f"{one.commit[:8]} ({one.subject}){among}: {one.series} series of {', '.join(one.blocks)} regressed"
    rises = [one.rise for one in report.of(GateVerdict.REGRESSION)]
    if accepted := {re.escape(rise.of.name): rise.commit[:8] for rise in rises}:
        yield "if that was meant, add to regressions_first_commits in asv.conf.json:"
        yield from (f"    {dumps(pattern)}: {dumps(commit)}," for pattern, commit in accepted.items())
    if report.lost:
        yield text_table(
            "Without a value at HEAD",
            ["series", "cell", "machine", "reason"],
            [
                [one.of.series.name, one.of.cell.described(one.of.device), one.of.machine, one.reason]
                for one in report.lost
            ],
        )
    if not report.findings and not report.lost:
        yield f"no regression in {report.judged:,} series of {', '.join(report.machines)}"


def table_row(finding: GateFinding) -> list[str]:
    """A finding as a row of ``report_parts``'s table."""
    rise, ratio = finding.rise, finding.ratio
    remarks = ["slow rise"] if rise.trend else []
    remarks += [f"steps waited {100 * finding.waited:.0f} % of the time for a core"] if finding.waited >= 0.005 else []
    remarks += [finding.remark] if finding.remark else []
    return [
        str(finding.verdict),
        rise.of.series.name,
        rise.of.cell.described(rise.of.device),
        rise.of.machine,
        "" if math.isnan(rise.before) else f"{rise.before:.4g}",
        "" if math.isnan(rise.after) else f"{rise.after:.4g} ({100 * rise.change:+.3g} %)",
        f"{rise.commit[:8]}, after {rise.good[:8]}",
        "" if ratio is None else f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
        "; ".join(remarks),
    ]

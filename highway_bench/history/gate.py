"""Gate: has a series regressed in recent commits, on any machine, and since which commit?

A series that got worse by more than its own noise is a candidate. Candidates of this machine are measured again, and
count only if that confirms them. The gate does not pass if nothing was measured, or if a series has lost its value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import git
from highway_bench.history.files import BENCHMARKS, Result, read_json, read_results
from highway_bench.history.machine import Machine
from highway_bench.history.measure import FULL_ONLY, QUICK_SERIES
from highway_bench.history.noise import known_noise
from highway_bench.history.paths import Paths
from highway_bench.history.publish import publish
from highway_bench.history.regressions import Limits, Line, Regression, asv_steps, limits, lines_of, newest_steps
from highway_bench.history.remeasure import remeasured
from highway_bench.history.working_folder import exclusive

WINDOW = 10  # measured commits of a machine that count as recent


@dataclass(frozen=True)
class Lost:
    """A series that has no value at HEAD, though it was measured there: it failed, or the last point had one."""

    series: str
    machine: str
    reason: str


@dataclass
class GateReport:
    """The gate's result: regressions, series lost at HEAD, candidates that a re-run did not confirm, and how many
    series were judged with which limits."""

    regressions: list[Regression] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    dismissed: list[Regression] = field(default_factory=list)
    limits: list[Limits] = field(default_factory=list)
    series: int = 0  # how many were judged: those with a recent point, and one before it
    machines: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@exclusive
def gate(paths: Paths, here: Machine | None = None, *, window: int = WINDOW) -> GateReport:
    """Look for regressions in the last ``window`` measured commits of every machine.

    With ``here``, this machine's candidates are measured again. Raises ``NothingMeasured`` where HEAD has no point on
    any machine, since older points say nothing about HEAD, and where no series has two points to compare. Raises
    ``BadInput`` for a tree with uncommitted changes, which the result would not be about.
    """
    check(paths, window)
    try:
        published = publish(paths, paths.working / "gate", scripts=False)
    except NothingMeasured as reason:
        raise NothingMeasured(f"{reason}; a gate that measured nothing does not pass") from reason
    report = GateReport(lines=list(published.lines), machines=published.machines)
    commits = git.line_of(paths.root)
    order = {commit: number for number, commit in enumerate(commits)}
    by_machine: dict[str, list[Result]] = {}
    for result in sorted(read_results(paths.shown), key=lambda one: order[one.commit]):
        by_machine.setdefault(result.machine, []).append(result)
    if not any(results[-1].commit == commits[-1] and results[-1].points for results in by_machine.values()):
        raise NothingMeasured(
            f"nothing was measured at HEAD ({commits[-1][:8]}) on any machine: run nox -s history -- HEAD"
        )
    if here is not None and here.name not in by_machine:
        report.lines.append(f"{here.name} has no points, so nothing is measured again")

    candidates = [
        one
        for machine, results in by_machine.items()
        for one in _candidates(paths, published.html, machine, results, order, window, report)
    ]
    if not report.series and not report.lost:
        raise NothingMeasured(
            "no series has a recent point and one before it, so nothing was judged: run nox -s history -- HEAD~10..HEAD"
        )
    own = [one for one in candidates if here is not None and one.machine == here.name]
    others = [replace(one, remark="not measured again") for one in candidates if one not in own]
    if here is not None and own:
        own = remeasured(paths, here, own)
        report.lines.append(f"{len(own)} measured again")
    for one in (*others, *own):
        (report.regressions if one.holds else report.dismissed).append(one)
    report.regressions.sort(key=lambda one: (one.machine, one.series))
    return report


def _candidates(
    paths: Paths,
    html: Path,
    machine: str,
    results: Sequence[Result],
    order: Mapping[str, int],
    window: int,
    report: GateReport,
) -> Iterable[Regression]:
    """One machine's candidates, each series once. Adds the number of judged series, their limits, and the series
    without a value at HEAD to ``report``."""
    lines = lines_of(results, paths.configuration().get("regressions_first_commits", {}), order)
    recent = set(list(dict.fromkeys(result.commit for result in results))[-window:])
    behind = len(order) - 1 - order[results[-1].commit]
    if behind:
        report.lines.append(f"{machine}: not measured at HEAD, last {behind} commits before")
    else:
        report.lost += lost_series(machine, results[-1], lines, recent)
    judged = [series for series, line in lines.items() if len(line) > 1 and line[-1][0] in recent]
    report.series += len(judged)
    if len(judged) < len(lines):
        report.lines.append(
            f"{machine}: {len(lines) - len(judged)} of {len(lines)} series were not judged: no value "
            f"at its last {window} measured commits, or none before"
        )
    noise = known_noise(paths, machine)
    report.limits += limits(machine, {series: lines[series] for series in judged}, noise)
    candidates = {
        one.series: one
        for steps in (newest_steps(machine, lines, recent, noise), asv_steps(html, machine, lines, recent, noise))
        for one in steps
    }  # asv's replace ours: its detection covers the whole line, so its commit is more exact
    units = {name: about["unit"] for name, about in read_json(paths.shown / BENCHMARKS).items() if "." in name}
    return [replace(one, unit=units.get(series.partition("(")[0], "")) for series, one in candidates.items()]


def check(paths: Paths, window: int = WINDOW) -> None:
    """Raise ``BadInput`` for a checkout that the gate cannot judge, before anything is measured."""
    if window < 1:
        raise BadInput(f"a window has one commit at least, not {window}")
    git.check_not_shallow(paths.root)
    if git.is_dirty(paths.root):
        raise BadInput("uncommitted changes: the gate judges commits, so commit or stash them first")


def lost_series(machine: str, head: Result, lines: Mapping[str, Line], recent: Collection[str]) -> Iterable[Lost]:
    """Series without a value at ``head``: those that failed, and those that had one at a recent commit.

    A series that a quick run leaves out is not lost, nor is that of a block that was removed.
    """
    for series in head.failures:
        yield Lost(series, machine, "failed")
    measured = re.compile("" if FULL_ONLY in head.data["results"] else QUICK_SERIES)
    for series in sorted(lines.keys() & head.series - head.points.keys() - set(head.failures)):
        commit, last = lines[series][-1]
        if commit in recent and measured.match(series):
            yield Lost(series, machine, f"n/a, and {last.value:.4g} at {commit[:8]}")

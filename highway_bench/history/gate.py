"""Gate: has a series regressed in recent commits, and since which?

Stored points propose. Exact counts are judged by them alone. A step's time is then timed beside that of the last good
commit, both in turn and in new processes, because a machine's speed changes more from day to day than the gate must
see. The outcome is clean, a regression, or undecided where the machine was too disturbed to tell.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from highway_bench.asv_suite.series import Judged
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import git
from highway_bench.history.compare import LEFT_OUT, Compared, Precision, compare
from highway_bench.history.files import Result, read_results
from highway_bench.history.lines import Followed, Line, Rise, find, lines_of, rises
from highway_bench.history.machine import Machine
from highway_bench.history.paths import Paths
from highway_bench.history.working_folder import exclusive
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.provenance.load import Load

WINDOW = 10  # measured commits of a machine that count as recent
CONFIDENCE = 0.99  # one-sided, over all series that are confirmed together
LEAST = 1.025  # the estimated slow-down of an alarm
EXCLUDED = 1.05  # clean, if the interval ends below it
SECONDS = 400.0  # for confirmation


class GateVerdict(StrEnum):
    """What became of a series that got worse; the worst first."""

    REGRESSION = "regression"
    UNDECIDED = "undecided"
    CLEAN = "not confirmed"


@dataclass(frozen=True)
class GateFinding:
    """A series that got worse, with the verdict.

    ``ratio`` is HEAD's step time over that of the last good commit, with an interval of 98 %, if both were timed.
    ``waited`` is the share of the wall time in which these steps waited for a core.
    """

    rise: Rise
    verdict: GateVerdict
    ratio: IntervalEstimate | None = None
    waited: float = 0.0
    remark: str = ""


@dataclass(frozen=True)
class Lost:
    """A series that has no value at HEAD, though it was measured there: it failed, or the last point had one."""

    of: Followed
    reason: str


@dataclass
class GateReport:
    """The gate's result. ``judged`` is the number of series with a recent point and one before it; ``load`` says what
    disturbed the machine during confirmation."""

    findings: list[GateFinding] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    judged: int = 0
    machines: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    load: str = ""

    def of(self, verdict: GateVerdict) -> list[GateFinding]:
        """The findings with this verdict."""
        return [one for one in self.findings if one.verdict is verdict]


@exclusive
def gate(paths: Paths, here: Machine | None = None, *, window: int = WINDOW, seconds: float = SECONDS) -> GateReport:
    """Look for regressions in the last ``window`` measured commits of every machine.

    With ``here``, this machine's proposals are timed beside the last good commit, for ``seconds`` at most; those of
    other machines stay undecided. Raises ``NothingMeasured`` where HEAD has no point on any machine, since older points
    say nothing about HEAD, and where no series has two points to compare. Raises ``BadInput`` for a tree with
    uncommitted changes, which the result would not be about.
    """
    check(paths, window)
    commits = git.line_of(paths.root)
    order = {commit: number for number, commit in enumerate(commits)}
    by_machine: dict[str, list[Result]] = {}
    for result in sorted(
        (one for one in read_results(paths.results) if one.commit in order), key=lambda one: order[one.commit]
    ):
        by_machine.setdefault(result.machine, []).append(result)
    if not any(results[-1].commit == commits[-1] and results[-1].points for results in by_machine.values()):
        raise NothingMeasured(
            f"nothing was measured at HEAD ({commits[-1][:8]}) on any machine, and a gate that measured nothing does "
            "not pass: run nox -s history"
        )
    report, proposed = GateReport(machines=list(by_machine)), []
    accepted = paths.configuration().get("regressions_first_commits", {})
    for results in by_machine.values():
        lines = lines_of(results, paths.suite(), accepted, order)
        recent = set(list(dict.fromkeys(result.commit for result in results))[-window:])
        judged_here = sum(len(line) > 1 and line[-1][0] in recent for line in lines.values())
        report.judged += judged_here
        if not judged_here:
            report.lines.append(f"{results[-1].machine}: no series has a recent point and one before it, none judged")
        if results[-1].commit == commits[-1]:
            report.lost += lost_series(results[-1], paths, lines, recent)
        else:
            behind = len(order) - 1 - order[results[-1].commit]
            report.lines.append(f"{results[-1].machine}: not measured at HEAD, last {behind} commits before")
        proposed += list(rises(lines, recent))
    if not report.judged and not report.lost:
        raise NothingMeasured(
            "no series has a recent point and one before it, so nothing was judged: run nox -s history -- HEAD~10..HEAD"
        )
    timed = [one for one in proposed if one.of.series.judged is Judged.TIMED]
    report.findings += [GateFinding(one, GateVerdict.REGRESSION) for one in proposed if one not in timed]
    mine = [one for one in timed if here is not None and one.of.machine == here.name]
    report.findings += [
        GateFinding(one, GateVerdict.UNDECIDED, remark="not timed here") for one in timed if one not in mine
    ]
    if here is not None and mine:
        load = Load.now()
        report.findings += confirmed(paths, here, mine, seconds)
        report.load = str(load.since())
    report.findings = sorted(worst(report.findings), key=lambda one: (one.rise.of.machine, one.rise.of.name))
    return report


def worst(findings: Iterable[GateFinding]) -> Iterable[GateFinding]:
    """One finding a series: a step and a trend may both have been proposed for it."""
    severity = list(GateVerdict)
    kept: dict[Followed, GateFinding] = {}
    for one in sorted(findings, key=lambda finding: severity.index(finding.verdict)):
        kept.setdefault(one.rise.of, one)
    return kept.values()


def check(paths: Paths, window: int = WINDOW) -> None:
    """Raise ``BadInput`` for a checkout that the gate cannot judge, before anything is measured."""
    if window < 1:
        raise BadInput(f"a window has one commit at least, not {window}")
    git.check_not_shallow(paths.root)
    if git.is_dirty(paths.root):
        raise BadInput("uncommitted changes: the gate judges commits, so commit or stash them first")


def confirmed(paths: Paths, here: Machine, proposed: Sequence[Rise], seconds: float) -> Iterable[GateFinding]:
    """The verdict on each proposed time, HEAD being timed in turn with the last good commit of each."""
    by_good: dict[str, list[Rise]] = {}
    for one in proposed:
        by_good.setdefault(one.good, []).append(one)
    confidence = 1 - 2 * (1 - CONFIDENCE) / len(proposed)  # two-sided; Bonferroni's correction
    end = time.monotonic() + seconds
    for number, (good, many) in enumerate(by_good.items()):
        left = (end - time.monotonic()) / (len(by_good) - number)
        reasons: list[str] = []
        try:
            compared = compare(
                paths,
                good,
                "HEAD",
                list(dict.fromkeys(one.of.cell for one in many)),
                precision=Precision(half_width=LEAST - 1, confidence=confidence, seconds=left),
                device=here.device,
                report=reasons.append,
            )
        except (BadInput, NothingMeasured) as reason:
            compared, reasons = [], [*reasons, str(reason)]
        found = {one.cell: one for one in compared}
        for one in many:
            if one.of.cell in found:
                yield judged(one, found[one.of.cell], confidence)
            else:
                yield GateFinding(
                    one, GateVerdict.UNDECIDED, remark="; ".join(line for line in reasons if LEFT_OUT in line)
                )


def judged(rise: Rise, compared: Compared, confidence: float = 2 * CONFIDENCE - 1) -> GateFinding:
    """The verdict on a proposed time that was compared; ``confidence`` is that of a two-sided interval."""
    ratio = compared.ratio(confidence)
    if ratio.low > 1 and ratio.value >= LEAST:
        verdict = GateVerdict.REGRESSION
    elif ratio.high / ratio.value <= LEAST or ratio.high < EXCLUDED:
        verdict = GateVerdict.CLEAN
    else:
        verdict = GateVerdict.UNDECIDED
    return GateFinding(rise, verdict, compared.ratio(2 * CONFIDENCE - 1), compared.waited)


def lost_series(head: Result, paths: Paths, lines: dict[Followed, Line], recent: set[str]) -> Iterable[Lost]:
    """Series without a value at ``head``: those that failed, and those that had one at a recent commit.

    A series that a quick run leaves out is not lost, nor is that of a block that was removed.
    """
    suite = paths.suite()
    for value in head.values:
        of = find(suite, head.machine, value.series)
        if of is None:
            continue
        if value.value is None:
            yield Lost(of, "failed")
        elif value.point is None and of in lines and of.cell in set(suite.cells(of.series, quick=not head.is_full)):
            commit, last = lines[of][-1]
            if commit in recent:
                yield Lost(of, f"n/a, and {last.value:.4g} at {commit[:8]}")

"""Gate: has a series regressed in recent commits, and since which?

Stored points propose. Exact counts are judged by them alone. Where a step's time rose, HEAD and the last good commit
are timed in turn, in new processes, because a machine's speed changes more from day to day than the gate must see. The
outcome is clean, a regression, or undecided where the machine was too disturbed to tell.
"""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from highway_bench.errors import BadInput, HighwayBenchError, NothingMeasured
from highway_bench.history import WINDOW, git
from highway_bench.history.builds import NotBuilt
from highway_bench.history.compare import (
    CONFIDENCE,
    EXCLUDED,
    LEAST_PAIRS,
    Compared,
    Precision,
    StepChange,
    compare,
    joint,
)
from highway_bench.history.files import Result, read_results
from highway_bench.history.lines import (
    Line,
    SuspectedRegression,
    TrackedSeries,
    accepted_rises,
    lines_of,
    points_of_machines,
    recent_commits,
    rises,
    tracked_in,
)
from highway_bench.history.machine import Machine, series_name
from highway_bench.history.paths import Paths, exclusive
from highway_bench.history.suite.series import SERIES, Judged, Suite
from highway_bench.history.verdicts import GateVerdict, StoredVerdict, covering, store_verdict
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.provenance.machine import Load

SECONDS = 400.0  # for confirmation
ELSEWHERE = "not timed again: a point of another machine, or --no-confirm"


@dataclass(frozen=True)
class GateFinding:
    """A series that got worse, with the verdict.

    ``ratio`` is HEAD's step time over that of the last good commit, if both were timed, with the interval that decided:
    of 98 %, or more where several series were timed. ``waited`` is the share of the wall time in which these steps
    waited for a core.
    """

    rise: SuspectedRegression
    verdict: GateVerdict
    ratio: IntervalEstimate | None = None
    waited: float = 0.0
    remark: str = ""


@dataclass(frozen=True)
class MissingSeries:
    """A series that has no value at HEAD, though it was measured there: it failed, or the last point had one."""

    of: TrackedSeries
    reason: str


@dataclass(frozen=True)
class Culprit:
    """The commit since which series regressed, or the last of the ``commits`` among which it is: those after the one
    that was measured before it. ``blocks`` are the blocks that regressed, or the package's own layers."""

    commit: str
    subject: str
    commits: int
    series: int
    blocks: tuple[str, ...]


@dataclass
class GateReport:
    """The gate's result. ``judged`` is the number of series with a recent point and one before it, or timed in turn
    without; ``first`` are the machines whose point at HEAD is their first one; ``load`` says what disturbed the machine
    during confirmation; ``not_built`` is why a commit could not be timed again."""

    findings: list[GateFinding] = field(default_factory=list)
    lost: list[MissingSeries] = field(default_factory=list)
    judged: int = 0
    machines: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    load: str = ""
    culprits: list[Culprit] = field(default_factory=list)
    not_built: NotBuilt | None = None

    def of(self, verdict: GateVerdict) -> list[GateFinding]:
        """The findings with this verdict."""
        return [one for one in self.findings if one.verdict is verdict]


@exclusive
def gate(paths: Paths, here: Machine | None = None, *, window: int = WINDOW, seconds: float = SECONDS) -> GateReport:
    """Look for regressions in the last ``window`` measured commits of every machine that was measured at HEAD.

    With ``here``, this machine's proposals are timed in turn with the last good commit; nothing more starts after
    ``seconds``. Those of other machines stay undecided. A verdict is stored, and holds for the rises that it covers. If
    this machine has no point with which HEAD can be compared, all times of a quick point are timed in turn with the
    last commit that has a point of any machine. Points whose machine is not told apart are judged by nothing.

    Raises ``NothingMeasured`` where HEAD has no point on any machine, since older points say nothing about HEAD, and
    where no series has two points to compare; ``BadInput`` for a tree with uncommitted changes, which the result would
    not be about.
    """
    check(paths, window)
    order, suite, report = git.line_of(paths.root), paths.suite(), GateReport()
    accepted, machines = accepted_rises(paths, order), points_of_machines(paths.results, order)
    for machine in sorted({result.machine for result in read_results(paths.results) if not result.is_told_apart}):
        report.lines.append(f"{machine}: several processors had this name, so its points are not judged")
    proposed: list[SuspectedRegression] = []
    for machine, environments in machines.items():
        proposed += proposals(report, machine, environments, suite, accepted, order, window)
    if here is not None and (here.name not in machines or here.name in report.first):
        measured = {result.commit for one in machines.values() for results in one for result in results}
        if mine := unmeasured(here, suite, accepted, order, measured):
            proposed += mine
            report.judged += len(mine)
            report.machines = sorted({*report.machines, here.name})
            report.lines.append(
                f"{here.name}: no earlier point of it is on record, so times were taken in turn with "
                f"{mine[0].good[:8]}; counts and trainings were not judged"
            )
    if not report.machines:
        raise NothingMeasured(
            f"nothing was measured at HEAD ({list(order)[-1][:8]}) on any machine, and a gate that measured nothing "
            "does not pass: run highway-bench history run"
        )
    if not report.judged and not report.lost:
        raise NothingMeasured(
            "no series has a point before HEAD's on the same machine, so nothing was judged: run highway-bench history "
            "run HEAD~10..HEAD"
        )
    fresh: list[SuspectedRegression] = []
    for one in proposed:
        known = known_verdict(paths, one, order)
        if known is not None:
            remark = f"judged at {known.head[:8]}"
            report.findings.append(GateFinding(one, GateVerdict(known.verdict), known.interval, remark=remark))
        elif one.of.series.judged is not Judged.TIMED:
            report.findings.append(GateFinding(one, GateVerdict.REGRESSION))
        elif here is not None and one.of.machine == here.name:
            fresh.append(one)
        else:
            report.findings.append(GateFinding(one, GateVerdict.UNDECIDED, remark=ELSEWHERE))
    if here is not None and fresh:
        load = Load.now()
        for finding in confirmed(paths, here, fresh, seconds, report):
            report.findings.append(finding)
            if finding.verdict is not GateVerdict.UNDECIDED and finding.ratio is not None:
                store_verdict(paths.results, finding.rise, finding.verdict, finding.ratio, order)
        report.load = str(load.since())
    found = [
        one
        for one in worst(report.findings)
        if one.verdict is not GateVerdict.UNCONFIRMED or not math.isnan(one.rise.before)
    ]
    report.findings = sorted(found, key=lambda one: (one.rise.of.machine, one.rise.of.cell, one.rise.of.name))
    report.culprits = list(culprits(report.of(GateVerdict.REGRESSION), paths, order))
    return report


def known_verdict(paths: Paths, rise: SuspectedRegression, order: Mapping[str, int]) -> StoredVerdict | None:
    """The stored verdict on a time that rose; ``None`` for any other series."""
    return covering(paths.results, rise, order) if rise.of.series.judged is Judged.TIMED else None


def proposals(
    report: GateReport,
    machine: str,
    environments: Sequence[Sequence[Result]],
    suite: Suite,
    accepted: Mapping[str, str | None],
    order: Mapping[str, int],
    window: int,
) -> list[SuspectedRegression]:
    """What got worse by a machine's points, if it was measured at HEAD; ``report`` receives how much was judged."""
    newest = max(order[results[-1].commit] for results in environments)
    if newest < len(order) - 1:
        report.lines.append(
            f"{machine}: not measured at HEAD, last {len(order) - 1 - newest} commits before; not judged"
        )
        return []
    report.machines.append(machine)
    judged: set[TrackedSeries] = set()
    found: list[SuspectedRegression] = []
    for results in environments:
        if order[results[-1].commit] < newest:
            continue
        lines = lines_of(results, suite, accepted, order)
        recent = recent_commits(results, window)
        judged |= {
            of
            for of, line in lines.items()
            if len(line) > 1 and line[-1][0] in recent and of.series.judged is not Judged.NOT
        }
        report.lost += lost_series(results[-1], suite, lines, recent)
        found += rises(lines, recent)
    report.judged += len(judged)
    if not judged:
        report.first.append(machine)
        report.lines.append(f"{machine}: HEAD's point is its first one, so it was compared with none")
    return found


def rises_to_list(paths: Paths) -> list[tuple[SuspectedRegression, Result]]:
    """The rises in the points to be ``shown`` that asv's page lists, each with its machine's newest point.

    They are those of the last commits that each machine measured. Of times, a rise that a gate timed again is listed if
    it was confirmed, and any other from 5 % on.
    """
    order, suite = git.line_of(paths.root), paths.suite()
    accepted = accepted_rises(paths, order)
    found: dict[TrackedSeries, tuple[SuspectedRegression, Result]] = {}
    for results in itertools.chain.from_iterable(points_of_machines(paths.shown, order).values()):
        lines = lines_of(results, suite, accepted, order)
        for rise in rises(lines, recent_commits(results, WINDOW)):
            known, is_timed = known_verdict(paths, rise, order), rise.of.series.judged is Judged.TIMED
            if known.verdict == GateVerdict.REGRESSION if known else not is_timed or rise.change >= EXCLUDED - 1:
                found.setdefault(rise.of, (rise, results[-1]))
    return list(found.values())


def unmeasured(
    here: Machine,
    suite: Suite,
    accepted: Mapping[str, str | None],
    order: Mapping[str, int],
    measured: Collection[str],
) -> list[SuspectedRegression]:
    """The times of a quick point, each proposed as risen since the last commit before HEAD in ``measured``; none where
    there is no such commit. Series whose rise since then is ``accepted`` are left out."""
    *before, head = order
    good = max((commit for commit in before if commit in measured), key=order.__getitem__, default=None)
    if good is None:
        return []
    names = {key: name for name, key in suite.names.items()}
    every = [
        TrackedSeries(series, cell, here.name, f"blocks.{names[series, cell]}", series_name(), here.device)
        for series in SERIES
        if series.judged is Judged.TIMED
        for cell in suite.on(here.device).cells(series, quick=True)
    ]
    return [
        SuspectedRegression(of, math.nan, math.nan, head, good)
        for of in every
        if not any(
            re.match(pattern, of.name) and (commit is None or order[commit] > order[good])
            for pattern, commit in accepted.items()
        )
    ]


def culprits(regressed: Iterable[GateFinding], paths: Paths, order: Mapping[str, int]) -> Iterable[Culprit]:
    """What regressed, by the commit since which it did; ``order`` numbers the commits of HEAD's line."""
    by_commit: dict[tuple[str, str], list[GateFinding]] = {}
    for one in regressed:
        by_commit.setdefault((one.rise.commit, one.rise.good), []).append(one)
    for (commit, good), many in sorted(by_commit.items(), key=lambda item: order[item[0][0]]):
        blocks = dict.fromkeys(one.rise.of.cell.names[0] for one in many)
        commits = order[commit] - order[good]
        yield Culprit(commit, git.subject(paths.root, commit), commits, len(many), tuple(blocks))


def worst(findings: Iterable[GateFinding]) -> Iterable[GateFinding]:
    """One finding a series: a step and a trend may both have been proposed for it."""
    severity = list(GateVerdict)
    kept: dict[TrackedSeries, GateFinding] = {}
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


def confirmed(
    paths: Paths, here: Machine, proposed: Sequence[SuspectedRegression], seconds: float, report: GateReport
) -> Iterable[GateFinding]:
    """The verdict on each proposed time, HEAD being timed in turn with the last good commit of each.

    ``report`` receives why one could not be built.
    """
    by_good: dict[str, list[SuspectedRegression]] = {}
    for one in proposed:
        by_good.setdefault(one.good, []).append(one)
    confidence = joint(len(proposed))
    end = time.monotonic() + seconds
    for number, (good, many) in enumerate(by_good.items()):
        left = (end - time.monotonic()) / (len(by_good) - number)
        rule = Precision(confidence=confidence, seconds=left, excluded=EXCLUDED)
        try:
            compared = compare(paths, good, "HEAD", [one.of.cell for one in many], precision=rule, device=here.device)
        except HighwayBenchError as reason:
            report.not_built = reason if isinstance(reason, NotBuilt) else report.not_built
            for one in many:
                yield GateFinding(one, GateVerdict.UNDECIDED, remark=str(reason))
            continue
        found = {one.cell: one for one in compared}
        for one in many:
            yield verdict_on(one, found[one.of.cell], confidence)


def verdict_on(rise: SuspectedRegression, compared: Compared, confidence: float = 2 * CONFIDENCE - 1) -> GateFinding:
    """The verdict on a proposed time that was compared; ``confidence`` is that of a two-sided interval."""
    if compared.reason:
        is_new = math.isnan(rise.before) and not compared.failed  # the last good commit lacks the cell
        verdict = GateVerdict.UNCONFIRMED if is_new else GateVerdict.UNDECIDED
        return GateFinding(rise, verdict, remark=compared.reason)
    change = compared.change(confidence)
    if change is StepChange.UNDECIDED and len(compared.ratios) < LEAST_PAIRS:
        remark = f"{len(compared.ratios)} pairs of processes until the time was up, of at least {LEAST_PAIRS}"
        return GateFinding(rise, GateVerdict.UNDECIDED, remark=remark)
    verdicts = {StepChange.SLOWER: GateVerdict.REGRESSION, StepChange.UNDECIDED: GateVerdict.UNDECIDED}
    verdict = verdicts.get(change, GateVerdict.UNCONFIRMED)
    interval = compared.ratio(2 * CONFIDENCE - 1 if compared.excludes(EXCLUDED) else confidence)
    return GateFinding(rise, verdict, interval, compared.waited)


def lost_series(
    head: Result, suite: Suite, lines: Mapping[TrackedSeries, Line], recent: Collection[str]
) -> Iterable[MissingSeries]:
    """Series without a value at ``head``: those that failed, and those that had one at a recent commit.

    A series that a quick run leaves out is not lost, nor is that of a block that was removed.
    """
    names = suite.names
    expected = {(series, cell) for series in SERIES for cell in suite.cells(series, quick=not head.is_full)}
    for name, point in head.values.items():
        key = names.get(name.partition(".")[2])
        if key is None or name in head.points:
            continue
        of = tracked_in(head, key, name)
        if point is None:
            yield MissingSeries(of, "failed")
        elif of in lines and key in expected:
            commit, last = lines[of][-1]
            if commit in recent:
                yield MissingSeries(of, f"n/a, and {last.value:.4g} at {commit[:8]}")

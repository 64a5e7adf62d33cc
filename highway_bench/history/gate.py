"""Gate: has something regressed in recent commits, on any machine, and since when?

asv's own step detection proposes, over the whole line; a look at the newest points proposes what asv cannot see yet,
since a step of one commit may be a spike. Every proposal must exceed the series' own noise, and where this machine and
this checkout measured it, must be there again when it is measured anew; a time also beside the last good commit's, for
a machine may be slower in one hour than in another. Bytes are exact. A gate that measured nothing
never passes, nor does a series that fails at HEAD.
"""

from __future__ import annotations

import itertools
import re
import shutil
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import git
from highway_bench.history.compare import LEAST_PAIRS, Cell, compare
from highway_bench.history.files import BENCHMARKS, Point, Result, read_json, read_results
from highway_bench.history.layout import Layout
from highway_bench.history.lock import alone
from highway_bench.history.measure import FULL_ONLY, QUICK_SERIES, AsvFailed, Machine, measure_here
from highway_bench.history.noise import is_exact, is_loss, is_time, known_noise, tolerated
from highway_bench.history.publish import publish

WINDOW = 10  # measured commits of a machine that count as recent
LEVEL = 5  # points before the newest that give its level

Line = list[tuple[str, Point]]  # a series' points with their commits, oldest first


@dataclass(frozen=True)
class Regression:
    """A series that got worse: between which values, and by which commit. ``good`` is the last commit before it that
    has a point; the culprit lies after it, up to and with ``commit``."""

    series: str
    machine: str
    before: float
    after: float
    tolerated: float
    commit: str
    good: str
    unit: str = ""
    again: float | None = None  # the value of a re-run
    beside: float | None = None  # HEAD's step over that of the commit ``good``, timed in turn
    remark: str = ""

    @property
    def holds(self) -> bool:
        """Whether what was measured anew exceeds the limit as well, as far as something was."""
        values = (self.again, None if self.beside is None else self.beside * self.before)
        return all(value is None or value > self.before + self.tolerated for value in values)

    @property
    def change(self) -> str:
        return f"{100 * (self.after / self.before - 1):+.3g} %" if self.before else f"{self.after - self.before:+.3g}"


@dataclass(frozen=True)
class Lost:
    """A series that has no value at HEAD, though it was measured there: it failed, or the last point had one."""

    series: str
    machine: str
    reason: str


@dataclass(frozen=True)
class Limits:
    """By how much a new point of a benchmark's series may rise without being flagged, the series' least, median and
    most: shares of the value, decades for losses."""

    machine: str
    benchmark: str
    series: int
    least: float
    median: float
    most: float


@dataclass
class Verdict:
    """What the gate found: regressions, series lost at HEAD, proposals that a re-run did not confirm, how much was
    looked at, and how closely."""

    regressions: list[Regression] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    dismissed: list[Regression] = field(default_factory=list)
    limits: list[Limits] = field(default_factory=list)
    series: int = 0  # judged: with a recent point, and one before it
    machines: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@alone
def gate(layout: Layout, here: Machine | None = None, *, window: int = WINDOW) -> Verdict:
    """Look for regressions in the last ``window`` measured commits of every machine.

    With ``here``, proposals of this machine are measured again. Raises ``NothingMeasured`` where HEAD has no point on
    any machine, for an old history must not vouch for a commit that nobody measured, and where no series has two points
    to be told apart. Raises ``BadInput`` for a tree with uncommitted changes: HEAD's verdict would pass for theirs.
    """
    check(layout, window)
    try:
        published = publish(layout, layout.working / "gate", scripts=False)
    except NothingMeasured as reason:
        raise NothingMeasured(f"{reason}; a gate that measured nothing does not pass") from reason
    verdict = Verdict(lines=list(published.lines), machines=published.machines)
    commits = git.line_of(layout.root)
    order = {commit: number for number, commit in enumerate(commits)}
    by_machine: dict[str, list[Result]] = {}
    for result in sorted(read_results(layout.shown), key=lambda one: order[one.commit]):
        by_machine.setdefault(result.machine, []).append(result)
    if not any(results[-1].commit == commits[-1] and results[-1].points for results in by_machine.values()):
        raise NothingMeasured(f"nothing was measured at HEAD ({commits[-1][:8]}) on any machine: "
                              f"run nox -s history -- HEAD")
    if here is not None and here.name not in by_machine:
        verdict.lines.append(f"{here.name} has no points, so that nothing is measured again")

    proposed = [found for machine, results in by_machine.items()
                for found in _propose(layout, published.html, machine, results, order, window, verdict)]
    if not verdict.series and not verdict.lost:
        raise NothingMeasured("no series has a recent point and one before it, so that nothing was judged: "
                              "run nox -s history -- HEAD~10..HEAD")
    for found in _confirmed(layout, proposed, here, verdict):
        (verdict.regressions if found.holds else verdict.dismissed).append(found)
    verdict.regressions.sort(key=lambda one: (one.machine, one.series))
    return verdict


def _propose(layout: Layout, html: Path, machine: str, results: Sequence[Result], order: Mapping[str, int],
             window: int, verdict: Verdict) -> Iterable[Regression]:
    """What seems to have regressed on one machine, each series once; what was looked at there, and what has no value at
    HEAD, goes into ``verdict``."""
    lines = lines_of(results, layout.configuration().get("regressions_first_commits", {}), order)
    recent = set(list(dict.fromkeys(result.commit for result in results))[-window:])
    behind = len(order) - 1 - order[results[-1].commit]
    if behind:
        verdict.lines.append(f"{machine}: not measured at HEAD, last {behind} commits before")
    else:
        verdict.lost += lost_series(machine, results[-1], lines, recent)
    judged = [series for series, line in lines.items() if len(line) > 1 and line[-1][0] in recent]
    verdict.series += len(judged)
    if len(judged) < len(lines):
        verdict.lines.append(f"{machine}: {len(lines) - len(judged)} of {len(lines)} series were not judged: no value "
                             f"at its last {window} measured commits, or none before")
    noise = known_noise(layout, machine)
    verdict.limits += limits(machine, {series: lines[series] for series in judged}, noise)
    found = {one.series: one for steps in (newest_steps(machine, lines, recent, noise),
                                           asv_steps(html, machine, lines, recent, noise))
             for one in steps}  # asv's come last: it saw the whole line, and knows the commit better
    units = {name: about["unit"] for name, about in read_json(layout.shown / BENCHMARKS).items() if "." in name}
    return [replace(one, unit=units.get(series.partition("(")[0], "")) for series, one in found.items()]


def check(layout: Layout, window: int = WINDOW) -> None:
    """Raise ``BadInput`` for what the gate does not judge, before anything is measured."""
    if window < 1:
        raise BadInput(f"a window has one commit at least, not {window}")
    git.check_whole(layout.root)
    if git.is_dirty(layout.root):
        raise BadInput("uncommitted changes: the gate judges commits, so commit or stash them first")


def lines_of(results: Sequence[Result], accepted: Mapping[str, str | None],
             order: Mapping[str, int]) -> dict[str, Line]:
    """Each series' points, those that its newest place continues, a value there or none, from the last ``accepted``
    change for the worse on.

    ``accepted`` is asv's own list of first commits by a pattern of series; one without a commit is never judged.
    """
    lines: dict[str, Line] = {}
    identities: dict[str, tuple[object, ...]] = {}
    for result in reversed(results):
        for series in result.places:
            identity = result.identity(series)
            if identities.setdefault(series, identity) == identity and series in result.points:
                lines.setdefault(series, []).insert(0, (result.commit, result.points[series]))
    for pattern, commit in accepted.items():
        for series in [name for name in lines if re.match(pattern, name)]:
            lines[series] = [(at, point) for at, point in lines[series]
                             if commit is not None and order[at] >= order.get(commit, 0)]
    return {series: line for series, line in lines.items() if line}


def lost_series(machine: str, head: Result, lines: Mapping[str, Line], recent: Collection[str]) -> Iterable[Lost]:
    """Series without a value at ``head``: those that failed, and those that had one at a recent commit. What a quick
    run does not look at is not lost, nor is a block that is no more."""
    for series in head.failures:
        yield Lost(series, machine, "failed")
    looked_at = re.compile("" if FULL_ONLY in head.data["results"] else QUICK_SERIES)
    for series in sorted(lines.keys() & head.places - head.points.keys() - set(head.failures)):
        commit, last = lines[series][-1]
        if commit in recent and looked_at.match(series):
            yield Lost(series, machine, f"n/a, and {last.value:.4g} at {commit[:8]}")


def newest_steps(machine: str, lines: Mapping[str, Line], recent: Collection[str],
                 noise: Mapping[str, float]) -> Iterable[Regression]:
    """Series whose newest point, if it is recent, lies above the level of those before it; bytes that rose recently and
    have not come down."""
    for series, line in lines.items():
        found = rise(line, recent) if is_exact(series) else step_up(series, line, recent, noise.get(series))
        if found is not None:
            place, before, allowed = found
            yield Regression(series, machine, before, line[-1][1].value, allowed, line[place][0], line[place - 1][0])


def rise(line: Line, recent: Collection[str]) -> tuple[int, float, float] | None:
    """The first recent point that lies above the one before it, if the newest does so as well: its place, the value
    before, and the tolerance."""
    for place, ((_, before), (commit, after)) in enumerate(itertools.pairwise(line), start=1):
        if commit in recent and before.value < min(after.value, line[-1][1].value):
            return place, before.value, 0.0
    return None


def step_up(series: str, line: Line, recent: Collection[str],
            repeated: float | None) -> tuple[int, float, float] | None:
    """The place from which on all points lie above the level of the ``LEVEL`` before the newest, that level, and the
    tolerance; ``None`` where the newest does not."""
    commit, last = line[-1]
    if len(line) < 2 or commit not in recent:
        return None
    before = [point for _, point in line[-1 - LEVEL:-1]]
    level = statistics.median(point.value for point in before)
    allowed = tolerated(series, before, repeated)
    if last.value <= level + allowed:
        return None
    place = len(line) - 1
    while line[place - 1][1].value > level + allowed:  # one of those behind the level is not
        place -= 1
    return place, level, allowed


def limits(machine: str, lines: Mapping[str, Line], noise: Mapping[str, float]) -> Iterable[Limits]:
    """What is tolerated of the next point of each series, by benchmark."""
    shares: dict[str, list[float]] = {}
    for series, line in lines.items():
        before = [point for _, point in line[-LEVEL:]]
        level = 1.0 if is_loss(series) else abs(statistics.median(point.value for point in before))
        allowed = tolerated(series, before, noise.get(series))
        shares.setdefault(series.partition("(")[0], []).append(allowed / level if level else allowed)
    for benchmark, many in sorted(shares.items()):
        yield Limits(machine, benchmark, len(many), min(many), statistics.median(many), max(many))


def asv_steps(html: Path, machine: str, lines: Mapping[str, Line], recent: Collection[str],
              noise: Mapping[str, float]) -> Iterable[Regression]:
    """asv's regressions whose first bad commit is recent, held against the noise of the points on both sides."""
    index, found = read_json(html / "index.json"), read_json(html / "regressions.json")
    commit_of = {int(revision): commit for revision, commit in index["revision_to_hash"].items()}
    for series, path, _where, _index, _last, _best, jumps in found["regressions"]:
        if f"machine-{machine}" not in Path(path).parts:
            continue
        line = lines.get(series, [])
        places = {commit: place for place, (commit, _) in enumerate(line)}
        for _from, to, before, after in jumps:
            commit = commit_of[to]
            place = places.get(commit, 0)
            if commit in recent and place:
                earlier = [point for _, point in line[max(0, place - LEVEL):place]]
                allowed = tolerated(series, earlier, noise.get(series))
                if after > before + allowed:
                    yield Regression(series, machine, before, after, allowed, commit, line[place - 1][0])


def _confirmed(layout: Layout, proposed: list[Regression], here: Machine | None, verdict: Verdict) -> list[Regression]:
    """The proposals, those of this machine with the value that a re-run of this checkout gave."""
    mine = [one for one in proposed if here is not None and one.machine == here.name]
    others = [replace(one, remark="not measured again") for one in proposed if one not in mine]
    if not mine or here is None:
        return others
    folder = layout.working / "again"
    shutil.rmtree(folder, ignore_errors=True)
    try:  # a full run: the cells are few, and a quick one leaves the deep ones out
        measured = measure_here(layout, here, quick=False, out=folder,
                                series=[f"^{re.escape(one.series)}$" for one in mine],
                                only=sorted({"|".join(map(str, cell_of(one.series))) for one in mine}))
    except NothingMeasured:
        points: dict[str, Point] = {}
    else:
        points = {series: point for result in measured.results.values() for series, point in result.points.items()}
    verdict.lines.append(f"{len(mine)} measured again")
    anew = [replace(one, again=points[one.series].value, remark=f"again {points[one.series].value:.4g}")
            if one.series in points else replace(one, remark="a re-run gave no value") for one in mine]
    timed = [one for one in anew if one.again is not None and one.holds and is_time(one.series)]
    done = others + [one for one in anew if one not in timed]
    for good in dict.fromkeys(one.good for one in timed):
        done += _beside(layout, here, good, [one for one in timed if one.good == good])
    return done


def _beside(layout: Layout, here: Machine, good: str, timed: Sequence[Regression]) -> list[Regression]:
    """``timed`` with HEAD's step over that of their last ``good`` commit, both taken now and in turn."""
    cells = dict.fromkeys(cell_of(one.series) for one in timed)
    try:
        compared = compare(layout, good, "HEAD", list(cells), pairs=LEAST_PAIRS, device=here.device)
    except (BadInput, NothingMeasured, AsvFailed) as reason:
        return [replace(one, remark=f"{one.remark}; not beside {good[:8]}: {reason}") for one in timed]
    ratios = {one.cell: one.ratio.value for one in compared}
    found = []
    for one in timed:
        ratio = ratios.get(cell_of(one.series))
        remark = f"{good[:8]} lacks it" if ratio is None else f"{ratio:.3g} times {good[:8]} beside it"
        found.append(replace(one, beside=ratio, remark=f"{one.remark}; {remark}"))
    return found


def cell_of(series: str) -> Cell:
    """Block, family and depth of a series: where its benchmark's parameters leave one out, what the benches take."""
    name, _, rest = series.partition("(")
    block, *others = [value.strip().strip("'") for value in rest.rstrip(")").split(",")]
    if ".Families." in name:
        return block, others[0], 4
    return block, "dense", int(others[0]) if others else 10

"""Steps: which series of a machine got worse lately, by more than their own noise, and how large a rise would show.

asv's own step detection looks over the whole line; a look at the newest points sees what asv cannot see yet, since a
step of one commit may be a spike. Bytes are exact.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from highway_bench.history.files import Point, Result, read_json
from highway_bench.history.noise import is_exact, is_loss, tolerated
from highway_bench.measure.statistics import IntervalEstimate

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
    beside: IntervalEstimate | None = None  # HEAD's step over that of the commit ``good``, timed in turn
    remark: str = ""

    @property
    def holds(self) -> bool:
        """Whether what was measured anew exceeds the limit as well, as far as something was."""
        values = (self.again, None if self.beside is None else self.beside.value * self.before)
        return all(value is None or value > self.before + self.tolerated for value in values)

    @property
    def change(self) -> str:
        """The change, and beside it what noise may be; bytes, which are counted exactly, have none."""
        if not self.before:
            return f"{self.after - self.before:+.3g}"
        noise = "" if is_exact(self.series) else f" (noise: {100 * self.tolerated / abs(self.before):.2g} %)"
        return f"{100 * (self.after / self.before - 1):+.3g} %{noise}"


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


def lines_of(
    results: Sequence[Result], accepted: Mapping[str, str | None], order: Mapping[str, int]
) -> dict[str, Line]:
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
            lines[series] = [
                (at, point) for at, point in lines[series] if commit is not None and order[at] >= order.get(commit, 0)
            ]
    return {series: line for series, line in lines.items() if line}


def newest_steps(
    machine: str, lines: Mapping[str, Line], recent: Collection[str], noise: Mapping[str, float]
) -> Iterable[Regression]:
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


def step_up(
    series: str, line: Line, recent: Collection[str], repeated: float | None
) -> tuple[int, float, float] | None:
    """The place from which on all points lie above the level of the ``LEVEL`` before the newest, that level, and the
    tolerance; ``None`` where the newest does not."""
    commit, last = line[-1]
    if len(line) < 2 or commit not in recent:
        return None
    before = [point for _, point in line[-1 - LEVEL : -1]]
    level = statistics.median(point.value for point in before)
    allowed = tolerated(series, before, repeated)
    if last.value <= level + allowed:
        return None
    place = len(line) - 1
    while line[place - 1][1].value > level + allowed:  # one of those behind the level is not
        place -= 1
    return place, level, allowed


def asv_steps(
    html: Path, machine: str, lines: Mapping[str, Line], recent: Collection[str], noise: Mapping[str, float]
) -> Iterable[Regression]:
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
                earlier = [point for _, point in line[max(0, place - LEVEL) : place]]
                allowed = tolerated(series, earlier, noise.get(series))
                if after > before + allowed:
                    yield Regression(series, machine, before, after, allowed, commit, line[place - 1][0])


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

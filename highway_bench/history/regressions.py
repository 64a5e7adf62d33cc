"""Regressions: which series of a machine got worse recently by more than their noise, and which rise is detectable.

asv's step detection covers the whole line, but not the newest points, where a step may still be a spike. Those are
compared with the level before them. Bytes are exact.
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
    """A series that got worse: the values before and after, and the first bad ``commit``.

    ``good`` is the last commit before it that has a point; the cause is in a later commit, up to ``commit``.
    """

    series: str
    machine: str
    before: float
    after: float
    tolerated: float
    commit: str
    good: str
    unit: str = ""
    remeasured: float | None = None  # the value of a re-run
    ratio_to_good: IntervalEstimate | None = None  # HEAD's step over that of the commit ``good``, timed in turn
    remark: str = ""

    @property
    def holds(self) -> bool:
        """Whether every repeated measurement exceeds the limit as well."""
        values = (self.remeasured, None if self.ratio_to_good is None else self.ratio_to_good.value * self.before)
        return all(value is None or value > self.before + self.tolerated for value in values)

    @property
    def change(self) -> str:
        """The change, with the tolerated noise; bytes are exact and have none."""
        if not self.before:
            return f"{self.after - self.before:+.3g}"
        noise = "" if is_exact(self.series) else f" (noise: {100 * self.tolerated / abs(self.before):.2g} %)"
        return f"{100 * (self.after / self.before - 1):+.3g} %{noise}"


@dataclass(frozen=True)
class Limits:
    """By how much a new point of a benchmark's series may rise without being flagged: least, median and most over the
    series, as shares of the value, or decades for losses."""

    machine: str
    benchmark: str
    series: int
    least: float
    median: float
    most: float


def lines_of(
    results: Sequence[Result], accepted: Mapping[str, str | None], order: Mapping[str, int]
) -> dict[str, Line]:
    """Each series' points of its newest identity, from the last ``accepted`` regression on.

    ``accepted`` is asv's list of first commits by a pattern of series; series without a commit there are never judged.
    """
    lines: dict[str, Line] = {}
    identities: dict[str, tuple[object, ...]] = {}
    for result in reversed(results):
        for series in result.series:
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
    """Series whose newest point, if recent, exceeds the level before it; and bytes that rose recently and have not
    fallen since."""
    for series, line in lines.items():
        step = rise(line, recent) if is_exact(series) else step_up(series, line, recent, noise.get(series))
        if step is not None:
            position, before, allowed = step
            yield Regression(
                series, machine, before, line[-1][1].value, allowed, line[position][0], line[position - 1][0]
            )


def rise(line: Line, recent: Collection[str]) -> tuple[int, float, float] | None:
    """The first recent point that exceeds the one before it, if the newest does so as well: its position, the value
    before, and the tolerance."""
    for position, ((_, before), (commit, after)) in enumerate(itertools.pairwise(line), start=1):
        if commit in recent and before.value < min(after.value, line[-1][1].value):
            return position, before.value, 0.0
    return None


def step_up(
    series: str, line: Line, recent: Collection[str], repeated: float | None
) -> tuple[int, float, float] | None:
    """The position from which on all points exceed the level of the ``LEVEL`` points before the newest, that level, and
    the tolerance; ``None`` where the newest does not exceed it."""
    commit, last = line[-1]
    if len(line) < 2 or commit not in recent:
        return None
    before = [point for _, point in line[-1 - LEVEL : -1]]
    level = statistics.median(point.value for point in before)
    allowed = tolerated(series, before, repeated)
    if last.value <= level + allowed:
        return None
    position = len(line) - 1
    while line[position - 1][1].value > level + allowed:  # stops: one of the points of the level does not exceed it
        position -= 1
    return position, level, allowed


def asv_steps(
    html: Path, machine: str, lines: Mapping[str, Line], recent: Collection[str], noise: Mapping[str, float]
) -> Iterable[Regression]:
    """asv's regressions with a recent first bad commit, if they exceed the noise of the points before."""
    index, published = read_json(html / "index.json"), read_json(html / "regressions.json")
    commit_of = {int(revision): commit for revision, commit in index["revision_to_hash"].items()}
    for series, path, _where, _index, _last, _best, jumps in published["regressions"]:
        if f"machine-{machine}" not in Path(path).parts:
            continue
        line = lines.get(series, [])
        positions = {commit: position for position, (commit, _) in enumerate(line)}
        for _from, to, before, after in jumps:
            commit = commit_of[to]
            position = positions.get(commit, 0)
            if commit in recent and position:
                earlier = [point for _, point in line[max(0, position - LEVEL) : position]]
                allowed = tolerated(series, earlier, noise.get(series))
                if after > before + allowed:
                    yield Regression(series, machine, before, after, allowed, commit, line[position - 1][0])


def limits(machine: str, lines: Mapping[str, Line], noise: Mapping[str, float]) -> Iterable[Limits]:
    """The tolerated rise of each series' next point, by benchmark."""
    shares: dict[str, list[float]] = {}
    for series, line in lines.items():
        before = [point for _, point in line[-LEVEL:]]
        level = 1.0 if is_loss(series) else abs(statistics.median(point.value for point in before))
        allowed = tolerated(series, before, noise.get(series))
        shares.setdefault(series.partition("(")[0], []).append(allowed / level if level else allowed)
    for benchmark, many in sorted(shares.items()):
        yield Limits(machine, benchmark, len(many), min(many), statistics.median(many), max(many))

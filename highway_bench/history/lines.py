"""Lines: each series' points over the commits of one machine, and which of them rose.

A time that rose is only proposed here: ``gate`` times it again, in turn with the last good commit. Exact counts need no
second measurement, and neither does training, which gives the same losses again on one CPU.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from highway_bench.errors import BadInput
from highway_bench.history import git
from highway_bench.history.files import Point, Result, read_results
from highway_bench.history.paths import CONFIGURATION, Paths
from highway_bench.history.suite.series import HistoryCell, Judged, Series, Suite

LEVEL = 5  # points before the newest that give its level
PROPOSED = 1.02  # a ratio's rise over its level from which on it is timed again
TREND = 10  # newest points of a trend
LEAST_TREND = 6
DRIFTED = 1.03  # a trend's rise over its points from which on it is timed again
LEAST_DECADES = 0.05  # of a loss, which is a logarithm
LEAST_SHARE = 0.05  # of steps to a threshold

Line = list[tuple[str, Point]]
"""A series' points with their commits, oldest first."""


class TrackedSeries(NamedTuple):
    """A series of the table at a cell, on one machine and its device; ``name`` is asv's."""

    series: Series
    cell: HistoryCell
    machine: str
    name: str
    environment: str = ""
    device: str = "cpu"


class SuspectedRegression(NamedTuple):
    """A series that got worse: its value before and now, the first bad commit and the last good one before it. The
    values are NaN where none is stored. ``level`` is that of all points since."""

    of: TrackedSeries
    before: float
    after: float
    commit: str
    good: str
    trend: bool = False  # a slow rise, and no step
    level: float = math.nan

    @property
    def change(self) -> float:
        """The rise as a share of the value before; NaN where that is 0."""
        return self.after / self.before - 1 if self.before else math.nan


def points_of_machines(folder: Path, order: Mapping[str, int]) -> dict[str, list[list[Result]]]:
    """Each machine's points in a folder that are on HEAD's line, oldest first, in one list for each environment.

    Points whose machine is not told apart are left out, since they are judged by nothing.
    """
    grouped: dict[str, dict[str, list[Result]]] = {}
    on_line = [result for result in read_results(folder) if result.commit in order and result.is_told_apart]
    for result in sorted(on_line, key=lambda one: order[one.commit]):
        grouped.setdefault(result.machine, {}).setdefault(result.data["env_name"], []).append(result)
    return {machine: list(environments.values()) for machine, environments in sorted(grouped.items())}


def recent_commits(results: Sequence[Result], window: int) -> list[str]:
    """The last ``window`` commits that have ``results``, oldest first."""
    return list(dict.fromkeys(result.commit for result in results))[-window:]


def accepted_rises(paths: Paths, order: Mapping[str, int]) -> dict[str, str | None]:
    """The accepted rises of asv's configuration: a pattern of series, and the full hash of the commit that rose.

    Raises ``BadInput`` for a pattern that is none, and for a commit that is not on HEAD's line.
    """
    accepted: dict[str, str | None] = {}
    for pattern, name in paths.configuration()["regressions_first_commits"].items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise BadInput(f"{CONFIGURATION}: {pattern!r} is no pattern: {error}") from None
        accepted[pattern] = None if name is None else git.commit_of(paths.root, name)
        if name is not None and accepted[pattern] not in order:
            raise BadInput(f"{CONFIGURATION}: the accepted rise at {name[:8]} is not on HEAD's first-parent line")
    return accepted


def lines_of(
    results: Sequence[Result], suite: Suite, accepted: Mapping[str, str | None], order: Mapping[str, int]
) -> dict[TrackedSeries, Line]:
    """The line of each series that ``suite`` follows, from one machine's ``results``, oldest first.

    A line has the points of the newest identity, from the last ``accepted`` rise on. ``accepted`` maps a pattern of
    series to the commit that rose, which is in ``order``; ``None`` means that the series is never judged.
    """
    lines: dict[TrackedSeries, Line] = {}
    identities: dict[TrackedSeries, tuple[object, ...]] = {}
    names = suite.names
    for result in reversed(results):
        for name, point in result.points.items():
            if (key := names.get(name.partition(".")[2])) is None:
                continue
            of = tracked_in(result, key, name)
            identity = result.identity(name)
            if identities.setdefault(of, identity) == identity:
                lines.setdefault(of, []).insert(0, (result.commit, point))
    for pattern, commit in accepted.items():
        for of in [one for one in lines if re.match(pattern, one.name)]:
            lines[of] = [(at, point) for at, point in lines[of] if commit is not None and order[at] >= order[commit]]
    return {of: line for of, line in lines.items() if line}


def tracked_in(result: Result, key: tuple[Series, HistoryCell], name: str) -> TrackedSeries:
    """The series ``key``, which a result has under this ``name``."""
    return TrackedSeries(*key, result.machine, name, str(result.data.get("env_name", "")), result.device)


def rises(lines: Mapping[TrackedSeries, Line], recent: Collection[str]) -> Iterable[SuspectedRegression]:
    """The series whose newest point is of a ``recent`` commit and worse than before; times are only proposed."""
    for of, line in lines.items():
        if len(line) < 2 or line[-1][0] not in recent:
            continue
        if of.series.judged is Judged.EXACT:
            yield from exact_rise(of, line, recent)
        elif of.series.judged is Judged.TRAINED:
            yield from step(of, line, recent)
        elif of.series.judged is Judged.TIMED:
            yield from step(of, line, recent)
            yield from trend(of, line, recent)


def exact_rise(of: TrackedSeries, line: Line, recent: Collection[str]) -> Iterable[SuspectedRegression]:
    """The first recent point from which on all points exceed the one before it."""
    for index, ((good, before), (commit, _)) in enumerate(itertools.pairwise(line), start=1):
        if commit in recent and before.value < min(point.value for _, point in line[index:]):
            yield SuspectedRegression(of, before.value, line[-1][1].value, commit, good)
            return


def step(of: TrackedSeries, line: Line, recent: Collection[str]) -> Iterable[SuspectedRegression]:
    """The step up that fits the newest points best, if the newest point is above it too.

    A step at a recent point divides the points into those before and those after. The best one has the least sum of
    distances from the medians of both. The level before is that of the last ``LEVEL`` points or fewer. Points before
    the last step down to the least level so far do not count: what came after it is the level that must hold. A step
    down from a rise to a level that is still higher than before ends nothing.
    """
    from asv.step_detect import detect_steps

    first = next(position for position, (commit, _) in enumerate(line) if commit in recent)
    newest = line[max(0, first - LEVEL) :]
    segments = detect_steps([point.value for _, point in newest])
    levels = [level for _, _, level, *_ in segments]
    down = [
        start
        for number, (start, _, now, *_) in enumerate(segments)
        if number and now * PROPOSED < levels[number - 1] and now <= PROPOSED * min(levels[:number])
    ]
    newest = newest[down[-1] if down else 0 :]
    values = [point.value for _, point in newest]
    splits = [
        split
        for split in range(1, len(newest))
        if newest[split][0] in recent
        and statistics.median(values[split:]) > statistics.median(values[max(0, split - LEVEL) : split])
    ]
    if not splits:
        return
    split = min(splits, key=lambda one: _spread(values[:one]) + _spread(values[one:]))
    before_it = newest[max(0, split - LEVEL) : split]
    if min(statistics.median(values[split:]), values[-1]) > limit_of(of.series, before_it):
        level = statistics.median(point.value for _, point in before_it)
        after = max(levels[-1], statistics.median(values[split:]))
        yield SuspectedRegression(of, level, values[-1], newest[split][0], newest[split - 1][0], level=after)


def _spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return math.fsum(abs(value - middle) for value in values)


def limit_of(series: Series, before: Line) -> float:
    """What a new point must exceed: for a time, the level of the points before by what is worth timing again; for
    training, the level by three standard errors of a difference of two points' seeds."""
    level = statistics.median(point.value for _, point in before)
    if series.judged is Judged.TIMED:
        return PROPOSED * level
    least = LEAST_DECADES if series.name == "log_loss" else LEAST_SHARE * level
    errors = [point.sd / math.sqrt(point.samples) for _, point in before if point.samples > 1]
    return level + max(least, 3 * math.sqrt(2) * statistics.median(errors or [0.0]))


def trend(of: TrackedSeries, line: Line, recent: Collection[str]) -> Iterable[SuspectedRegression]:
    """A slow rise over the newest recent points, whose slope is certain (Theil and Sen, an interval of 95 %)."""
    from scipy.stats import theilslopes

    newest = [(commit, point) for commit, point in line if commit in recent][-TREND:]
    if len(newest) < LEAST_TREND or any(point.value <= 0 for _, point in newest):
        return
    slope, middle, low, _ = theilslopes([math.log(point.value) for _, point in newest])
    steps = len(newest) - 1
    if low > 0 and math.exp(slope * steps) >= DRIFTED:
        # scipy's intercept is the value at the first point of the line through the medians
        last = math.exp(middle + slope * steps)
        yield SuspectedRegression(of, math.exp(middle), last, newest[1][0], newest[0][0], trend=True, level=last)

"""Lines: each series' points over the commits of one machine, and which of them rose.

A time that rose is only proposed here: ``gate`` times it beside the last good commit. Exact counts need no second
measurement, and training is deterministic on one machine.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from highway_bench.asv_suite.series import HistoryCell, Judged, Series, Suite
from highway_bench.history.files import Point, Result

LEVEL = 5  # points before the newest that give its level
PROPOSED = 1.02  # a ratio's rise over its level from which on it is timed again
TREND = 10  # newest points of a trend
LEAST_TREND = 6
DRIFTED = 1.03  # a trend's rise over its points from which on it is timed again
LEAST_DECADES = 0.05  # of a loss, which is a logarithm
LEAST_SHARE = 0.05  # of steps to a threshold

Line = list[tuple[str, Point]]
"""A series' points with their commits, oldest first."""


class Followed(NamedTuple):
    """A series of the table at a cell, on one machine; ``name`` is asv's."""

    series: Series
    cell: HistoryCell
    machine: str
    name: str


class Rise(NamedTuple):
    """A series that got worse: its value before and now, the first bad commit and the last good one before it."""

    of: Followed
    before: float
    after: float
    commit: str
    good: str
    trend: bool = False  # a slow rise, and no step

    @property
    def change(self) -> float:
        """The rise as a share of the value before; NaN where that is 0."""
        return self.after / self.before - 1 if self.before else math.nan


def lines_of(
    results: Sequence[Result], suite: Suite, accepted: Mapping[str, str | None], order: Mapping[str, int]
) -> dict[Followed, Line]:
    """The line of each series that ``suite`` follows, from one machine's ``results``, oldest first.

    A line has the points of the newest identity, from the last ``accepted`` rise on. ``accepted`` is asv's list of
    first commits by a pattern of series; a series without a commit there is never judged.
    """
    lines: dict[Followed, Line] = {}
    identities: dict[Followed, tuple[object, ...]] = {}
    for result in reversed(results):
        for name, point in result.points.items():
            followed = find(suite, result.machine, name)
            if followed is None:
                continue
            identity = result.identity(name)
            if identities.setdefault(followed, identity) == identity:
                lines.setdefault(followed, []).insert(0, (result.commit, point))
    for pattern, commit in accepted.items():
        for followed in [one for one in lines if re.match(pattern, one.name)]:
            lines[followed] = [
                (at, point) for at, point in lines[followed] if commit is not None and order[at] >= order.get(commit, 0)
            ]
    return {followed: line for followed, line in lines.items() if line}


def find(suite: Suite, machine: str, name: str) -> Followed | None:
    """What asv's name of a series stands for; ``None`` where the suite does not follow it."""
    key = suite.names.get(name.partition(".")[2])
    return None if key is None else Followed(*key, machine, name)


def rises(lines: Mapping[Followed, Line], recent: Collection[str]) -> Iterable[Rise]:
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
            yield from trend(of, line)


def exact_rise(of: Followed, line: Line, recent: Collection[str]) -> Iterable[Rise]:
    """The first recent point that exceeds the one before it, if the newest does so as well."""
    for (good, before), (commit, after) in itertools.pairwise(line):
        if commit in recent and before.value < min(after.value, line[-1][1].value):
            yield Rise(of, before.value, line[-1][1].value, commit, good)
            return


def step(of: Followed, line: Line, recent: Collection[str]) -> Iterable[Rise]:
    """The step that fits the newest points best, if it is one up, and the newest point is above it too.

    A step up at a recent point divides the points into ``LEVEL`` or fewer before and all those after. The best one has
    the least sum of distances from the medians of both.
    """
    splits = [position for position in range(1, len(line)) if line[position][0] in recent]
    newest = line[max(0, splits[0] - LEVEL) :]
    values = [point.value for _, point in newest]

    def distance(split: int) -> float:
        return _spread(values[:split]) + _spread(values[split:])

    split = min(range(len(newest) - len(splits), len(newest)), key=distance)
    before = newest[max(0, split - LEVEL) : split]
    level, limit = statistics.median(point.value for _, point in before), limit_of(of.series, before)
    if min(statistics.median(values[split:]), values[-1]) > limit:
        yield Rise(of, level, values[-1], newest[split][0], newest[split - 1][0])


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


def trend(of: Followed, line: Line) -> Iterable[Rise]:
    """A rise over the newest points, of which the median slope is certain (Theil and Sen, at 95 %)."""
    from scipy.stats import theilslopes

    newest = line[-TREND:]
    if len(newest) < LEAST_TREND:
        return
    slope, middle, low, _ = theilslopes([math.log(point.value) for _, point in newest])
    steps = len(newest) - 1
    if low > 0 and math.exp(slope * steps) >= DRIFTED:
        # the line through the median: scipy's intercept is its value at the first point
        yield Rise(of, math.exp(middle), math.exp(middle + slope * steps), newest[1][0], newest[0][0], trend=True)

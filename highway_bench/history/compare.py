"""Compare two commits: steps timed in turn, in several pairs of processes; exact counts; or their stored points.

Each commit is installed into an environment of its own (see ``builds``). One process of each commit runs, both on the
same core, and the two take their steps in turn, in random order, so whatever else the machine does affects both alike.
Some conditions last as long as a process, such as its memory layout, and would look like a difference between the
commits. Therefore fresh pairs are started until the ratio's interval is narrow enough, and the interval is that of the
pairs' ratios.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import MOST_PAIRS, git
from highway_bench.history.builds import build_sides, path_of
from highway_bench.history.files import read_results
from highway_bench.history.paths import Paths, exclusive
from highway_bench.history.suite.measuring import SeriesKey, count_cells
from highway_bench.history.suite.process import CellLacking, PackageProcess, RequestFailed
from highway_bench.history.suite.series import BY_NAME, HistoryCell, Series
from highway_bench.measure.statistics import IntervalEstimate, hodges_lehmann, log10_interval

ROUNDS, SECONDS = 20, 0.5  # the least of a cell in a pair, the seconds being those of the timed steps added up
LEAST_PAIRS = 6
EARLY_PAIRS = 4  # after which a slow-down may be excluded
CONFIDENCE = 0.99  # one-sided, that a slow-down is excluded
DIFFERENCE = 0.025  # relative: the smallest that matters, and the half-width of an interval that is narrow enough
LEAST = 1 + DIFFERENCE
EXCLUDED = 1.05  # the slow-down that a series must exclude where its interval is still wide


def joint(cells: int) -> float:
    """The confidence of a two-sided interval, if one of ``cells`` must not be slower by chance (Bonferroni)."""
    return 1 - 2 * (1 - CONFIDENCE) / max(cells, 1)


class Precision(NamedTuple):
    """When to stop: a cell is done after ``least`` pairs if its interval's half-width is at most ``half_width`` at
    ``confidence`` (two-sided), or after ``most``; and as soon as it ``excludes`` a slow-down by the factor
    ``excluded``, if there is one. No cell of a pair starts after ``seconds``."""

    least: int = 8
    most: int = MOST_PAIRS
    half_width: float = DIFFERENCE
    confidence: float = 0.95
    seconds: float = math.inf
    excluded: float | None = None

    def check(self) -> None:
        """Raise ``BadInput`` for fewer pairs than an interval needs."""
        if not LEAST_PAIRS <= self.least <= self.most:
            raise BadInput(f"an interval needs {LEAST_PAIRS} pairs of processes or more, not {self.least}")


class StepChange(StrEnum):
    """What a comparison shows of a cell at the second commit."""

    SLOWER = "slower"
    FASTER = "faster"
    NEITHER = "no difference detected"
    UNDECIDED = "undecided"


@dataclass
class Compared:
    """One cell at two commits. Each pair of processes gives one ratio of the second to the first.

    ``seconds`` are all timed steps of each commit, without the wait for a core, ``wall`` both commits' with it.
    ``reason`` says why a cell was not compared: a commit lacks it, or it ``failed`` at one.
    """

    cell: HistoryCell
    ratios: list[float] = field(default_factory=list)
    seconds: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    wall: list[float] = field(default_factory=list)
    reason: str = ""
    failed: bool = False

    def ratio(self, confidence: float = 0.95) -> IntervalEstimate:
        """The geometric mean of the pairs' ratios, with Student's interval over the pairs."""
        return log10_interval(self.ratios, confidence)

    def is_done(self, precision: Precision) -> bool:
        """Whether no further pair is needed."""
        if self.reason or (precision.excluded and self.excludes(precision.excluded)):
            return True
        if len(self.ratios) < precision.least:
            return False
        ratio = self.ratio(precision.confidence)
        return ratio.high / ratio.value - 1 <= precision.half_width or len(self.ratios) >= precision.most

    def excludes(self, slowdown: float) -> bool:
        """Whether the ratio is below ``slowdown`` with 99 % confidence (one-sided) and its estimate does not matter.

        A difference is never found early, only excluded. So stopping here adds no false alarm.
        """
        if len(self.ratios) < EARLY_PAIRS:
            return False
        ratio = self.ratio(2 * CONFIDENCE - 1)
        return ratio.value < 1 + DIFFERENCE and ratio.high < slowdown

    @property
    def waited(self) -> float:
        """The share of the wall time in which the steps waited for a core."""
        return 1 - math.fsum(map(math.fsum, self.seconds)) / math.fsum(self.wall)

    def change(self, confidence: float) -> StepChange:
        """Slower or faster: by the interval, and by an estimate of 2.5 % or more."""
        excluded = self.excludes(EXCLUDED)
        if len(self.ratios) < LEAST_PAIRS and not excluded:
            return StepChange.UNDECIDED
        ratio = self.ratio(confidence)
        if ratio.high < 1 and ratio.value <= 1 / LEAST:
            return StepChange.FASTER
        if ratio.low > 1 and ratio.value >= LEAST:
            return StepChange.SLOWER
        return StepChange.NEITHER if excluded or ratio.high / ratio.value <= LEAST else StepChange.UNDECIDED


class ValueChange(NamedTuple):
    """A series' values at two commits; ``after`` is why it failed at the second, if it did. ``machine`` is empty where
    the values were measured just now."""

    series: Series
    cell: HistoryCell
    before: float
    after: float | str
    device: str = "cpu"
    machine: str = ""


@exclusive
def compare_counts(
    paths: Paths, first: str, second: str, cells: Sequence[HistoryCell], device: str = "cpu"
) -> list[ValueChange]:
    """The exact counts of ``cells`` that differ between two commits."""
    trees = build_sides(paths, first, second, device)
    with ThreadPoolExecutor() as side_by_side:
        before, after = side_by_side.map(lambda tree: count_cells(path_of(tree), device, cells, tree), trees)
    changes = []
    for (name, cell), old in before.items():
        new = after[SeriesKey(name, cell)]
        if isinstance(old, list) and old and new and new != old:
            changes.append(ValueChange(BY_NAME[name], cell, old[0], new if isinstance(new, str) else new[0], device))
    return changes


@exclusive
def compare(
    paths: Paths,
    first: str,
    second: str,
    cells: Sequence[HistoryCell],
    *,
    precision: Precision | None = None,
    device: str = "cpu",
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> list[Compared]:
    """Compare two commits at ``cells``.

    A commit may be compared with itself: any difference is chance then. A cell that one of the commits lacks, or where
    one of them fails, has a ``reason`` and no ratio. ``report`` receives a line for each pair of processes. Raises
    ``NothingMeasured`` where the commits have no cell in common, ``BadInput`` without a cell, or for commits that do
    not exist.
    """
    rule, begin = precision or Precision(), time.monotonic()
    rule.check()
    if not cells:
        raise BadInput("there is no cell to compare: name a --block")
    order = random.Random(seed)
    compared = [Compared(cell) for cell in dict.fromkeys(cells)]
    trees = build_sides(paths, first, second, device)
    for number in range(rule.most):
        wanted = [one for one in compared if not one.is_done(rule)]
        if not wanted or time.monotonic() - begin >= rule.seconds:
            break
        with ExitStack() as processes:
            sides = [processes.enter_context(PackageProcess(path_of(tree), device, number, tree)) for tree in trees]
            for one in wanted:
                if time.monotonic() - begin >= rule.seconds:
                    break
                try:
                    one_pair(sides, one, order)
                except (CellLacking, RequestFailed) as reason:
                    one.reason, one.failed = str(reason), isinstance(reason, RequestFailed)
        report(f"{number + 1} pairs of processes, {len(wanted)} of {len(compared)} cells")
    if all(one.reason and not one.failed for one in compared):
        raise NothingMeasured(
            f"no cell can be compared at {first} and {second}: {compared[0].cell}: {compared[0].reason}"
        )
    return compared


def one_pair(sides: Sequence[PackageProcess], compared: Compared, order: random.Random) -> None:
    """Add a pair of processes to a cell: the steps of both in turn, in an order that is drawn for each round."""
    for side in order.sample(sides, 2):
        side.ask("prepare", **compared.cell._asdict())
    times: tuple[list[float], list[float]] = ([], [])
    while len(times[0]) < ROUNDS or sum(map(math.fsum, times)) < SECONDS:
        for index in order.sample((0, 1), 2):
            seconds, wall = sides[index].ask("step")
            times[index].append(seconds)
            compared.wall.append(wall)
    logs = [math.log(second / first) for first, second in zip(*times, strict=True)]
    compared.ratios.append(math.exp(hodges_lehmann(logs)))
    for mine, new in zip(compared.seconds, times, strict=True):
        mine.extend(new)


def stored_values(paths: Paths, first: str, second: str) -> list[ValueChange]:
    """The series of which a machine has a point at both commits, with the same python and torch.

    Raises ``NothingMeasured`` where no machine has such points.
    """
    commits = [git.commit_of(paths.root, name) for name in (first, second)]
    results = [result for result in read_results(paths.results) if result.is_told_apart]
    every = [[one for one in results if one.commit == commit] for commit in commits]
    found = []
    for (old, new), (name, key) in itertools.product(itertools.product(*every), paths.suite().names.items()):
        name = f"blocks.{name}"
        before, after = old.points.get(name), new.points.get(name)
        if before and after and old.machine == new.machine and old.identity(name) == new.identity(name):
            found.append(ValueChange(*key, before.value, after.value, new.device, new.machine))
    if not found:
        raise NothingMeasured(f"no machine has points of {first} and {second}: highway-bench history run COMMIT")
    return found

"""Judgements of the gate, drawn from a pool of processes that were timed before; each process is used once.

A line of a pool is one process, or one pair of processes. Kinds of lines: ``same``, a pair on the same code;
``compute`` and ``memory``, a pair whose second process does 5 % more work, bound by arithmetic or by memory
(``planted_worker``); ``point``, one process of a point.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from highway_bench.history import WINDOW
from highway_bench.history.compare import EXCLUDED, LEAST, Compared, Precision, joint
from highway_bench.history.files import Point
from highway_bench.history.gate import verdict_on
from highway_bench.history.lines import LEVEL, TREND, Line, SuspectedRegression, TrackedSeries, rises
from highway_bench.history.suite.measuring import RATIO
from highway_bench.history.suite.series import HistoryCell
from highway_bench.history.verdicts import GateVerdict

POINT_PROCESSES = 3
DRIFT = 1.01  # a commit

Verdicts = Mapping[str, GateVerdict | None]


def of_kind(kind: str, pool: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of one kind."""
    return [line for line in pool if line["kind"] == kind]


def judgements(pool: Sequence[dict[str, Any]]) -> Iterator[GateVerdict]:
    """The verdicts of single series, drawn from pairs of processes."""
    for name in sorted({name for line in pool for name in line["values"]}):
        pairs = iter([line["values"][name] for line in pool if name in line["values"]])
        while (verdict := draw(pairs, 1)) is not None:
            yield verdict


def draw(pairs: Iterator[Sequence[float]], series: int, slower: float = 1.0) -> GateVerdict | None:
    """A verdict on one of ``series``, from as many pairs as the gate would take; ``None`` if there are too few left.

    ``slower`` multiplies every ratio.
    """
    confidence = joint(series)
    precision = Precision(half_width=LEAST - 1, confidence=confidence, excluded=EXCLUDED)
    compared = Compared(HistoryCell("", "", 0), seconds=([1.0], [1.0]), wall=[2.0])
    for ratio, _ in pairs:
        compared.ratios.append(slower * ratio)
        if compared.is_done(precision):
            return verdict_on(
                SuspectedRegression(TrackedSeries(RATIO, compared.cell, "", ""), 1, 2, "", ""), compared, confidence
            ).verdict
    return None


def points(pool: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, float]]]:
    """The points of a pool in the order in which they were measured: the load, and each series' median."""
    under: dict[str, list[dict[str, float]]] = {}
    for line in pool:
        if line["kind"] != "point":
            continue
        processes = under.setdefault(line["load"], [])
        processes.append(line["values"])
        if len(processes) == POINT_PROCESSES:
            yield line["load"], {name: median(values[name] for values in processes) for name in processes[0]}
            processes.clear()


def proposals(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> Iterator[tuple[str, dict[str, float]]]:
    """The load of each run of the gate, and the series that it proposes, with the factor by which each is slower.

    Each point is judged once, against the points before it since the machine was started, whatever the load was then: a
    machine's history is not all idle either. With a ``drift``, one series of each run, in turn, is slower by that
    factor at each of the newest ``TREND`` points.
    """
    drifting = itertools.cycle(sorted({name for line in pool for name in line["values"]}))
    for _, of_boot in itertools.groupby(pool, key=lambda line: line["boot"]):
        yield from proposals_on(list(points(list(of_boot))), drifting, drift)


def proposals_on(
    measured: Sequence[tuple[str, dict[str, float]]], drifting: Iterator[str], drift: float
) -> Iterator[tuple[str, dict[str, float]]]:
    """The runs on the points since one start of the machine."""
    names = sorted({name for _, values in measured for name in values})
    for newest in range(LEVEL if drift == 1 else TREND, len(measured)):
        shown = measured[max(0, newest - WINDOW - LEVEL + 1) : newest + 1]
        commits = [str(number) for number in range(len(shown))]
        slower_by = dict.fromkeys(names, [1.0] * len(shown))
        slower_by[next(drifting)] = [drift ** max(0, number - len(shown) + 1 + TREND) for number in range(len(shown))]
        lines: dict[TrackedSeries, Line] = {}
        for name, by in slower_by.items():
            values = [Point(one * of[name], 0.0, POINT_PROCESSES) for one, (_, of) in zip(by, shown, strict=True)]
            cell = HistoryCell(*name.split(" "))
            lines[TrackedSeries(RATIO, cell, "", name)] = list(zip(commits, values, strict=True))
        proposed = {rise.of.name: int(rise.good) for rise in rises(lines, commits[-WINDOW:])}
        yield shown[-1][0], {name: slower_by[name][-1] / slower_by[name][good] for name, good in proposed.items()}


def whole_runs(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> Iterator[tuple[str, Verdicts]]:
    """Whole runs of the gate: the load, and the verdict on each series that a run proposed.

    The verdict is ``None`` if too few pairs are left. With a ``drift``, only the series that drifted has one, if it was
    proposed.
    """
    pairs: dict[tuple[str, str], list[list[float]]] = {}
    for line in pool:
        if line["kind"] == "same":
            for name, value in line["values"].items():
                pairs.setdefault((line["load"], name), []).append(value)
    left = {key: iter(values) for key, values in pairs.items()}
    for load, proposed in proposals(pool, drift):
        yield (
            load,
            {
                name: draw(left.get((load, name), iter(())), len(proposed), slower)
                for name, slower in proposed.items()
                if drift == 1 or slower > 1
            },
        )


def complete_runs(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> dict[str, list[Verdicts]]:
    """The whole runs for which the pool has enough pairs, by load."""
    complete: dict[str, list[Verdicts]] = {}
    for load, verdicts in whole_runs(pool, drift):
        if None not in verdicts.values():
            complete.setdefault(load, []).append(verdicts)
    return complete

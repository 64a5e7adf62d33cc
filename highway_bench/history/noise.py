"""Noise: how much a series varies when nothing has changed, measured A against A.

Three sources: the samples of one point (passes over the cells, or seeds), repeated points of one commit where they were
measured (``measure_noise``), and otherwise the differences of neighbouring commits.
"""

from __future__ import annotations

import itertools
import math
import shutil
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from highway_bench.errors import BadInput
from highway_bench.history.files import Point, read_json, write_json
from highway_bench.history.machine import Machine
from highway_bench.history.measure import measure_here
from highway_bench.history.paths import Paths
from highway_bench.history.working_folder import exclusive

SCHEMA = 2
SIGMAS = 3.0
EXACT = "_bytes"
LOSS = "track_log_loss"
# The least change to report: a share of the value, or decades for a loss, which is a logarithm. It is doubled where A
# against A was not measured.
LEAST = 0.05
LEAST_DECADES = 0.05
NEIGHBOURS = 4  # the least number of commit-to-commit differences for an estimate
ASSUMED = 0.10  # sd of a series without an estimate: the measured one of step times on a shared machine


class Spread(NamedTuple):
    """The sd of repeated runs of a series, relative (decades for losses), and its degrees of freedom."""

    sd: float
    degrees: int


def is_exact(series: str) -> bool:
    """Whether a series is counted, not sampled: any rise is real."""
    return series.partition("(")[0].endswith(EXACT)


def is_loss(series: str) -> bool:
    """Whether a series is a logarithm, whose differences are compared instead of its ratios."""
    return series.partition("(")[0].endswith(LOSS)


def is_time(series: str) -> bool:
    """Whether a series is a step's time, in seconds or over the roofline's."""
    return series.partition("(")[0].endswith((".time_step", ".track_slowdown"))


def tolerated(series: str, before: Sequence[Point], repeated: float | None = None) -> float:
    """By how much a new point may exceed the level of ``before`` (oldest first) without being a regression.

    In the series' own unit: 0 for bytes; for times a share of the level, for losses decades, and at least three
    standard deviations of the difference. ``repeated`` is the sd between repeated runs, relative (decades for losses).
    Runs in a row do not include slow drift, so the neighbours' differences count where they are larger. Without either,
    an sd of a tenth is assumed. The new point's own spread is not used: seeds that diverge, or samples that scatter,
    must not widen their own limit.
    """
    if is_exact(series) or not before:
        return 0.0
    level = statistics.median(point.value for point in before)
    scale = 1.0 if is_loss(series) else max(abs(level), 1e-12)
    least = (LEAST_DECADES if is_loss(series) else LEAST) * scale * (2 if repeated is None else 1)
    within = math.sqrt(2) * statistics.median(_of_median(point) for point in before)
    neighbours = _between([point.value for point in before])
    if repeated is None and neighbours is None:
        between = ASSUMED * scale
    else:
        between = max((repeated or 0.0) * scale, neighbours or 0.0)
    # The new point is one run, the level a median of several: one run's spread and the level's own.
    between *= math.sqrt(1 + math.pi / 2 / len(before))
    return max(least, SIGMAS * math.hypot(within, between))


def _of_median(point: Point) -> float:
    """Standard error of a point, the median of its samples (asymptotic, for normal samples); 0 for a single sample."""
    if math.isnan(point.sd) or point.samples < 2:
        return 0.0
    return math.sqrt(math.pi / 2) * point.sd / math.sqrt(point.samples)


def _between(values: Sequence[float]) -> float | None:
    """sd of one point from the median difference of neighbours, which a single real step hardly affects. ``None`` where
    there are too few."""
    steps = [abs(second - first) for first, second in itertools.pairwise(values)]
    if len(steps) < NEIGHBOURS:
        return None
    return 1.4826 * statistics.median(steps) / math.sqrt(2)


@exclusive
def measure_noise(paths: Paths, machine: Machine, runs: int = 3, *, quick: bool = True) -> dict[str, Spread]:
    """Measure this checkout ``runs`` times and record each series' spread.

    Exact series are left out. The spread is pooled with the recorded one; drift between two such sessions is not part
    of it. Written to ``reports/asv/noise/<machine>.json``, which is committed; remove that file to start again. Raises
    ``BadInput`` for fewer than two runs.
    """
    if runs < 2:
        raise BadInput(f"noise needs two runs at least, not {runs}")
    known = recorded_noise(paths, machine.name)
    values: dict[str, list[float]] = {}
    folder = paths.working / "noise"
    for _ in range(runs):
        shutil.rmtree(folder, ignore_errors=True)
        measured = measure_here(paths, machine, quick=quick, out=folder)
        for result in measured.results.values():
            for series, point in result.points.items():
                if not is_exact(series):
                    values.setdefault(series, []).append(point.value)
    spreads = {}
    for series, many in sorted(values.items()):
        if len(many) == runs:
            scale = 1.0 if is_loss(series) else max(abs(statistics.median(many)), 1e-12)
            spreads[series] = Spread(statistics.stdev(many) / scale, runs - 1)
    together = {
        series: pooled([session[series] for session in (known, spreads) if series in session])
        for series in sorted(known | spreads)
    }
    write_json(paths.noise / f"{machine.name}.json", {"schema": SCHEMA, "spreads": together})
    return spreads


def recorded_noise(paths: Paths, machine: str) -> dict[str, Spread]:
    """The recorded spread of each series; empty where none was measured."""
    path = paths.noise / f"{machine}.json"
    if not path.is_file():
        return {}
    data: dict[str, Any] = read_json(path)
    if data.get("schema") != SCHEMA:
        raise BadInput(
            f"{path} is of schema {data.get('schema')!r}, and this version reads {SCHEMA}: remove "
            "it and run highway-bench history noise again"
        )
    try:
        return {str(series): Spread(float(sd), int(degrees)) for series, (sd, degrees) in data["spreads"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is no record of noise: {error!r}; remove it and measure it again") from error


def known_noise(paths: Paths, machine: str) -> dict[str, float]:
    """The sd between runs of each series for the gate. It is at least the pooled sd of the benchmark's series, since a
    few runs may agree by chance."""
    own = recorded_noise(paths, machine)
    by_benchmark: dict[str, list[Spread]] = {}
    for series, spread in own.items():
        by_benchmark.setdefault(series.partition("(")[0], []).append(spread)
    least = {name: pooled(many).sd for name, many in by_benchmark.items()}
    return {series: max(spread.sd, least[series.partition("(")[0]]) for series, spread in own.items()}


def pooled(spreads: Iterable[Spread]) -> Spread:
    """One spread from several: the root mean square, weighted by degrees of freedom."""
    many = list(spreads)
    degrees = sum(one.degrees for one in many)
    return Spread(math.sqrt(math.fsum(one.degrees * one.sd**2 for one in many) / degrees), degrees)

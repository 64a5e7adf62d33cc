"""Noise: how far a series moves when nothing has changed, measured A against A.

Three sources, each of what it knows: the samples behind one point (passes over the cells, or seeds), repeated points of
one commit where they were measured (``measure_noise``), and otherwise how far neighbouring commits differ.
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
# The least change worth a word: shares of the value, but decades for a loss, which is a logarithm. Where A against A
# was not measured, twice that.
LEAST = 0.05
LEAST_DECADES = 0.05
NEIGHBOURS = 4  # commit-to-commit differences below which they say nothing
ASSUMED = 0.10  # sd of a series of which nobody knows it: that of step times on a shared machine, where it was measured


class Spread(NamedTuple):
    """How far repeated runs of a series differ: relative (decades for losses), from so many degrees of freedom."""

    sd: float
    degrees: int


def is_exact(series: str) -> bool:
    """Whether a series is counted, not sampled: any rise is real."""
    return series.partition("(")[0].endswith(EXACT)


def is_loss(series: str) -> bool:
    """Whether a series is a logarithm already, so that its differences are what counts."""
    return series.partition("(")[0].endswith(LOSS)


def is_time(series: str) -> bool:
    """Whether a series is a step's time, in seconds or over the roofline's."""
    return series.partition("(")[0].endswith((".time_step", ".track_slowdown"))


def tolerated(series: str, before: Sequence[Point], repeated: float | None = None) -> float:
    """By how much a new point may lie above the level of ``before`` (oldest first) without being a regression.

    In the series' own unit: 0 for bytes; for times a share of the level, for losses decades, and no less than three
    standard deviations of the difference. ``repeated`` is the sd between repeated runs, relative (decades for losses);
    runs that followed each other miss what drifts, so that the neighbours' differences count where they are larger.
    Where neither is known, a sd of a tenth is assumed. The new point is taken to be as exact as those before it: seeds
    that fall apart, or samples that scatter, are what is looked for, and must not widen their own limit.
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
    """Standard error of a point, a median of its samples (asymptotic, normal samples); 0 where it has one only."""
    if math.isnan(point.sd) or point.samples < 2:
        return 0.0
    return math.sqrt(math.pi / 2) * point.sd / math.sqrt(point.samples)


def _between(values: Sequence[float]) -> float | None:
    """sd of one point from differences of neighbours, by their median: a real step among them counts once. ``None``
    where they are too few."""
    steps = [abs(second - first) for first, second in itertools.pairwise(values)]
    if len(steps) < NEIGHBOURS:
        return None
    return 1.4826 * statistics.median(steps) / math.sqrt(2)


@exclusive
def measure_noise(paths: Paths, machine: Machine, runs: int = 3, *, quick: bool = True) -> dict[str, Spread]:
    """Measure this checkout ``runs`` times and record how far each series' values differ.

    Exact series are left out. What was recorded before is pooled with it, for hours differ; what a series drifts from
    one such session to another is not in it. Written to ``reports/asv/noise/<machine>.json``, which is committed;
    remove it to begin anew.
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
    found = {}
    for series, many in sorted(values.items()):
        if len(many) == runs:
            scale = 1.0 if is_loss(series) else max(abs(statistics.median(many)), 1e-12)
            found[series] = Spread(statistics.stdev(many) / scale, runs - 1)
    together = {
        series: pooled([spreads[series] for spreads in (known, found) if series in spreads])
        for series in sorted(known | found)
    }
    write_json(paths.noise / f"{machine.name}.json", {"schema": SCHEMA, "spreads": together})
    return found


def recorded_noise(paths: Paths, machine: str) -> dict[str, Spread]:
    """What was recorded of each series; nothing where it was never measured."""
    path = paths.noise / f"{machine}.json"
    if not path.is_file():
        return {}
    data: dict[str, Any] = read_json(path)
    if data.get("schema") != SCHEMA:
        raise BadInput(
            f"{path} is of schema {data.get('schema')!r}, and {SCHEMA} is what is read here: remove "
            "it and run highway-bench history noise again"
        )
    try:
        return {str(series): Spread(float(sd), int(degrees)) for series, (sd, degrees) in data["spreads"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is no record of noise: {error!r}; remove it and measure it again") from error


def known_noise(paths: Paths, machine: str) -> dict[str, float]:
    """What the gate takes for the sd between runs of each series: its own, and no less than its benchmark's series have
    together, since a few runs may agree by chance."""
    own = recorded_noise(paths, machine)
    by_benchmark: dict[str, list[Spread]] = {}
    for series, spread in own.items():
        by_benchmark.setdefault(series.partition("(")[0], []).append(spread)
    least = {name: pooled(many).sd for name, many in by_benchmark.items()}
    return {series: max(spread.sd, least[series.partition("(")[0]]) for series, spread in own.items()}


def pooled(spreads: Iterable[Spread]) -> Spread:
    """One spread from several: the root mean square, each counting by its degrees of freedom."""
    many = list(spreads)
    degrees = sum(one.degrees for one in many)
    return Spread(math.sqrt(math.fsum(one.degrees * one.sd**2 for one in many) / degrees), degrees)

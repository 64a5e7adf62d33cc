"""Measure a candidate again before it counts as a regression.

A re-run of this checkout decides on bytes and losses. A time must also be longer than that of the last good commit,
with both commits timed in turn: a machine may be slower for an hour, and a re-run is in the same hour.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.asv_command import AsvFailed
from highway_bench.history.compare import LEAST_PAIRS, TimedCell, compare
from highway_bench.history.files import Point
from highway_bench.history.machine import Machine
from highway_bench.history.measure import measure_here
from highway_bench.history.noise import is_time
from highway_bench.history.paths import Paths
from highway_bench.history.regressions import Regression


def remeasured(paths: Paths, here: Machine, candidates: Sequence[Regression]) -> list[Regression]:
    """This machine's candidates with the values of a re-run; for confirmed times, also with their ratio to the last
    good commit."""
    folder = paths.working / "again"
    shutil.rmtree(folder, ignore_errors=True)
    try:  # a full run: the cells are few, and a quick one leaves the deep ones out
        measured = measure_here(
            paths,
            here,
            quick=False,
            out=folder,
            series=[f"^{re.escape(one.series)}$" for one in candidates],
            only=sorted({"|".join(map(str, cell_of(one.series))) for one in candidates}),
        )
    except NothingMeasured:
        points: dict[str, Point] = {}
    else:
        points = {series: point for result in measured.results.values() for series, point in result.points.items()}
    again = [
        replace(one, remeasured=points[one.series].value, remark=f"again {points[one.series].value:.4g}")
        if one.series in points
        else replace(one, remark="a re-run gave no value")
        for one in candidates
    ]
    timed = [one for one in again if one.remeasured is not None and one.holds and is_time(one.series)]
    done = [one for one in again if one not in timed]
    for good in dict.fromkeys(one.good for one in timed):
        done += _with_ratio(paths, here, good, [one for one in timed if one.good == good])
    return done


def _with_ratio(paths: Paths, here: Machine, good: str, timed: Sequence[Regression]) -> list[Regression]:
    """``timed`` with the ratio of HEAD's step to that of their last ``good`` commit, both timed now and in turn."""
    cells = dict.fromkeys(cell_of(one.series) for one in timed)
    try:
        compared = compare(paths, good, "HEAD", list(cells), pairs=LEAST_PAIRS, device=here.device)
    except (BadInput, NothingMeasured, AsvFailed) as reason:
        return [replace(one, remark=f"{one.remark}; not compared with {good[:8]}: {reason}") for one in timed]
    ratios = {one.cell: one.ratio for one in compared}
    results = []
    for one in timed:
        ratio = ratios.get(cell_of(one.series))
        lacking = [f"{good[:8]} lacks it"] if ratio is None else []
        results.append(replace(one, ratio_to_good=ratio, remark="; ".join([one.remark, *lacking])))
    return results


def cell_of(series: str) -> TimedCell:
    """Block, family and depth of a series. A parameter that its benchmark lacks has the constant value of the
    benches."""
    name, _, rest = series.partition("(")
    block, *others = [value.strip().strip("'") for value in rest.rstrip(")").split(",")]
    if ".Families." in name:
        return block, others[0], 4
    return block, "dense", int(others[0]) if others else 10

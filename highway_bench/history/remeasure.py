"""Confirm: what seems to have regressed here is measured anew before it counts.

A re-run of this checkout decides on what is counted or trained. A time must be longer beside the last good commit as
well, both taken in turn: a machine may be slower in one hour than in another, and a re-run is of the same hour.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.asv_command import AsvFailed
from highway_bench.history.compare import LEAST_PAIRS, Cell, compare
from highway_bench.history.files import Point
from highway_bench.history.machine import Machine
from highway_bench.history.measure import measure_here
from highway_bench.history.noise import is_time
from highway_bench.history.paths import Paths
from highway_bench.history.regressions import Regression


def measured_anew(paths: Paths, here: Machine, proposed: Sequence[Regression]) -> list[Regression]:
    """Proposals of this machine with what a re-run of this checkout gave, and for times that it confirmed what they are
    beside the last good commit."""
    folder = paths.working / "again"
    shutil.rmtree(folder, ignore_errors=True)
    try:  # a full run: the cells are few, and a quick one leaves the deep ones out
        measured = measure_here(
            paths,
            here,
            quick=False,
            out=folder,
            series=[f"^{re.escape(one.series)}$" for one in proposed],
            only=sorted({"|".join(map(str, cell_of(one.series))) for one in proposed}),
        )
    except NothingMeasured:
        points: dict[str, Point] = {}
    else:
        points = {series: point for result in measured.results.values() for series, point in result.points.items()}
    anew = [
        replace(one, again=points[one.series].value, remark=f"again {points[one.series].value:.4g}")
        if one.series in points
        else replace(one, remark="a re-run gave no value")
        for one in proposed
    ]
    timed = [one for one in anew if one.again is not None and one.holds and is_time(one.series)]
    done = [one for one in anew if one not in timed]
    for good in dict.fromkeys(one.good for one in timed):
        done += _beside(paths, here, good, [one for one in timed if one.good == good])
    return done


def _beside(paths: Paths, here: Machine, good: str, timed: Sequence[Regression]) -> list[Regression]:
    """``timed`` with HEAD's step over that of their last ``good`` commit, both taken now and in turn."""
    cells = dict.fromkeys(cell_of(one.series) for one in timed)
    try:
        compared = compare(paths, good, "HEAD", list(cells), pairs=LEAST_PAIRS, device=here.device)
    except (BadInput, NothingMeasured, AsvFailed) as reason:
        return [replace(one, remark=f"{one.remark}; not beside {good[:8]}: {reason}") for one in timed]
    ratios = {one.cell: one.ratio for one in compared}
    found = []
    for one in timed:
        ratio = ratios.get(cell_of(one.series))
        lacking = [f"{good[:8]} lacks it"] if ratio is None else []
        found.append(replace(one, beside=ratio, remark="; ".join([one.remark, *lacking])))
    return found


def cell_of(series: str) -> Cell:
    """Block, family and depth of a series: where its benchmark's parameters leave one out, what the benches take."""
    name, _, rest = series.partition("(")
    block, *others = [value.strip().strip("'") for value in rest.rstrip(")").split(",")]
    if ".Families." in name:
        return block, others[0], 4
    return block, "dense", int(others[0]) if others else 10

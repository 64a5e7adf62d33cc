"""Conflicting verdicts: a block trains with one start or kind of branch and surely does not with another, and their
shares of seeds differ significantly (Fisher's exact test, 5 %).

Such a verdict depends on the start or the branch as much as on the block.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from highway_bench.measure.statistics import CONFIDENCE
from highway_bench.report.descriptions import Descriptions
from highway_bench.report.rows import block_label, groups, rows_of, start_of, without_start
from highway_bench.report.tables.trainability import Contests, surely_fails
from highway_bench.success.ladder import TRAINS


@dataclass(frozen=True)
class ConflictingVerdict:
    """``block`` trains in the family ``trains`` and surely does not in the family ``stalls``, at each of ``depths``.

    Families are names with their options, and with the start of the block: ``dense · scaled-branch``. ``machine`` is
    empty if there is only one.
    """

    block: str
    trains: str
    stalls: str
    depths: tuple[int, ...]
    machine: str = ""


def conflicting_verdicts(contests: Contests, about: Descriptions) -> list[ConflictingVerdict]:
    """All conflicts on one data set and machine and under one recipe, between starts or families that differ in options
    or branch."""
    if not contests:
        return []
    rungs = pd.concat([part for _, part in contests])
    rungs = rungs.assign(branch=[about.branch(str(label).partition(" ")[0]) for label in rungs["family_label"]])
    rungs = rungs.assign(start=rungs["block"].map(start_of), block=rungs["block"].map(without_start))
    conflicts: dict[tuple[str, str, str, str], list[int]] = {}
    alike = ["branch", "dataset", "match", "recipe", "machine", "machine_label", "block", "depth"]
    for setting, part in groups(rungs, alike):
        cells = rows_of(part)
        train, stall = (
            {(cell["family_label"], cell["start"]): (cell["k"], cell["n"]) for cell in cells if has(cell)}
            for has in (lambda cell: cell["verdict"] == TRAINS, surely_fails)
        )
        for one, other in itertools.product(sorted(train), sorted(stall)):
            differ_in_one = (one[0] == other[0]) != (one[1] == other[1])  # in the family or in the start, not in both
            if differ_in_one and are_apart(train[one], stall[other]):
                trains, stalls = (block_label(family, None, start) for family, start in (one, other))
                key = str(setting["block"]), trains, stalls, str(setting["machine_label"])
                conflicts.setdefault(key, []).append(int(str(setting["depth"])))
    return [
        ConflictingVerdict(block, trains, stalls, tuple(sorted(depths)), machine)
        for (block, trains, stalls, machine), depths in conflicts.items()
    ]


def are_apart(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two shares, each given as (successes, runs), differ significantly by Fisher's exact test."""
    counts = [[successes, runs - successes] for successes, runs in (one, other)]
    return bool(stats.fisher_exact(counts).pvalue < 1 - CONFIDENCE)

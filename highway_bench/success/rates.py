"""Rates: at which learning rate the runs with fresh seeds count, where a search chose the rate.

A rate must be stable. In a choice by tuning runs, one diverged seed of three counts as the largest loss of all runs,
and two exclude the rate. The fresh seeds run at the chosen rate. Where some of them diverge, or too few succeed though
every tuning run at the next lower rate did, they run at that rate too. The rate at which the larger share succeeds
counts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from highway_bench.success.ladder import ROUNDING, TRAINABLE

GRID: Final = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
"""Learning rates, each about a third of the one before."""


LossByRun = Mapping[tuple[float, int], float | None]
"""The final loss of each finished run by rate and seed; ``None`` for one that diverged or failed."""


def chosen_rate(losses: LossByRun, seeds: Collection[int]) -> float:
    """The rate of the lowest mean of log losses among those that have all ``seeds``; the lower one among equals.

    A diverged seed counts as the largest loss of all runs; where most seeds of a rate diverged, its mean is infinite.
    """
    complete = [rate for rate in GRID if all((rate, seed) in losses for seed in seeds)]
    largest = max(filter(math.isfinite, map(size, losses.values())), default=math.inf)

    def total(rate: float) -> float:
        sizes = [size(losses[rate, seed]) for seed in seeds]
        stable = 2 * sum(map(math.isinf, sizes)) < len(sizes)
        return math.fsum(min(one, largest) for one in sizes) if stable else math.inf

    return min(complete, key=lambda rate: (total(rate), rate))


def size(loss: float | None) -> float:
    """The logarithm of a loss, for ranks and means; infinite for a run without one. A loss of 0 counts as the smallest
    normal number."""
    return math.inf if loss is None or not math.isfinite(loss) else math.log(max(loss, sys.float_info.min))


class Fresh(NamedTuple):
    """The runs with fresh seeds at one rate: how many ``succeeded`` and ``diverged`` of those that ``ended``."""

    succeeded: int
    diverged: int
    ended: int


def next_lower(rate: float) -> float | None:
    """The next lower rate of the grid; ``None`` below its end."""
    return next((one for one in GRID if one < rate), None)


def wants_lower(fresh: Fresh, tuned: Collection[bool]) -> bool:
    """Whether the fresh seeds run at the next lower rate too; ``tuned`` says which tuning runs succeeded there."""
    too_few = fresh.succeeded < TRAINABLE * fresh.ended - ROUNDING
    return fresh.diverged > 0 or (too_few and bool(tuned) and all(tuned))


def counting(rates: Mapping[float, Fresh]) -> float:
    """The rate that counts: the largest share succeeds there; among equals the smallest share diverges, then the last
    of ``rates``."""
    order = {rate: number for number, rate in enumerate(rates)}

    def merit(rate: float) -> tuple[float, float, int]:
        succeeded, diverged, ended = rates[rate]
        return succeeded / max(1, ended), -diverged / max(1, ended), order[rate]

    return max(rates, key=merit)

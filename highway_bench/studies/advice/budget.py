"""Budget: how an advice divides its minutes. Shares of time in, numbers of steps, connections and seeds out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from highway_bench.errors import BadInput

COSTS, HALVING, FINALS = 0.15, 0.40, 0.40
"""Shares of the time. The rest is for checks and for the page."""

MARGIN: Final = 1.1  # what a prediction may be wrong by
THIRD: Final = 3  # one in so many goes on, and trains so many times as long
LEAST_KEPT: Final = 6  # connections that go on in any case: after few steps with one seed, ranks say little
FINALISTS: Final = 4
FIRST_TRIES, LATER_TRIES = 4, 2  # learning rates of a connection, in the first rung and in the others
MOST_STEPS: Final = 3_600  # in the last rung, where the minutes decide them
LEAST_FINAL_SEEDS, MOST_FINAL_SEEDS = 3, 12

CHOICES: Final = ((3, 2, 180, 13), (3, 1, 180, 8), (3, 1, 90, 3), (2, 1, 30, 2), (1, 1, 5, 2))
"""Rungs, seeds and least steps of the last one, and least connections, in the order of preference."""
LEAST_STEPS: Final = min(least for _, _, least, _ in CHOICES)

TIMED_ROUNDS: Final = (15, 10, 7, 5)
OTHER_ROUNDS: Final = 5  # warm-up, first steps and the building of networks, in rounds
BLOCK_RATIO: Final = 1.5  # a block's step over pre-norm's, before any is timed
PROCESSES: Final = 3


@dataclass(frozen=True)
class Pace:
    """Measured seconds: of a training ``step`` of pre-norm, of all else in its run (``setup``), and until the workers
    of a round of runs have started and its results are stored (``start``)."""

    step: float
    setup: float
    start: float


@dataclass(frozen=True)
class TimingPlan:
    """How steps are timed: at ``depth``, with so many rounds (``samples``) in each of ``processes``, and at most
    ``limit`` seconds a block for further processes."""

    depth: int
    samples: int
    processes: int
    limit: float


@dataclass(frozen=True)
class HalvingPlan:
    """The first ``connections`` of the list train in ``rungs`` rungs: for ``steps`` in the last one, and for a third of
    the next one's steps in every other; with one seed, and with ``seeds`` in the last rung. A third of them go on from
    each rung, but at least ``kept``."""

    connections: int
    steps: int
    rungs: int
    seeds: int = 1
    kept: int = LEAST_KEPT

    @property
    def ladder(self) -> tuple[int, ...]:
        """The steps of each rung."""
        return tuple(max(1, round(self.steps * share)) for share in shares(self.rungs))


def timing_plan(minutes: float, depth: int, blocks: int, pace: Pace) -> TimingPlan:
    """How to time a step of ``blocks`` blocks: at the whole depth if that fits, else at the deepest that does."""
    seconds = 60 * minutes * COSTS
    processes = PROCESSES if seconds >= 2 * PROCESSES * pace.start else 1
    left = max(seconds / processes - pace.start, 0.0)
    round_seconds = (blocks + 2) * BLOCK_RATIO * pace.step  # with plain and the yard-stick
    depths = [max(1, round(depth / 2**half)) for half in range(max(1, math.ceil(math.log2(depth)) - 1))]
    fits = (
        TimingPlan(timed, samples, processes, seconds / (2 * blocks))
        for timed in depths
        for samples in TIMED_ROUNDS
        if (samples + OTHER_ROUNDS) * round_seconds * timed / depth <= left
    )
    return next(fits, TimingPlan(depths[-1], 3, processes, 0.0))


def shares(rungs: int) -> list[float]:
    """The steps of each rung over those of the last one."""
    return [float(THIRD) ** (rung + 1 - rungs) for rung in range(rungs)]


def in_rung(rung: int, connections: int, kept: int = LEAST_KEPT) -> int:
    """How many of ``connections`` train in a rung: all, a third, a ninth, but not fewer than ``kept``."""
    return min(connections, max(kept, math.ceil(connections / int(THIRD**rung))))


def halving_plan(
    minutes: float, workers: int, ratios: Sequence[float], pace: Pace, steps: int | None = None
) -> HalvingPlan:
    """The most connections, then the most steps, then the most that go on, whose halving fits its share of the time.

    ``ratios`` are step times over pre-norm's, in the order of the connections. ``steps`` are those of the last rung, if
    they are given. Raises ``BadInput`` where not even two connections fit.
    """
    needed = []
    for rungs, seeds, least, fewest in CHOICES:
        if steps is not None and steps < least:
            continue
        budget = core_seconds(60 * minutes * HALVING, workers, (rungs + 1) * pace.start)
        for count in range(len(ratios), min(fewest, len(ratios)) - 1, -1):
            fixed, a_step = halving_cost(ratios[:count], rungs, seeds, pace)
            if (fit := int((budget - fixed) / a_step)) >= (steps or least):
                plan = HalvingPlan(count, steps or min(fit, MOST_STEPS), rungs, seeds)
                return replace(plan, kept=most_kept(budget, ratios[:count], plan, pace))
        seconds = (fixed + (steps or least) * a_step) * MARGIN / workers + pace.start * (rungs + 1)
        needed.append(seconds / (60 * HALVING))
    asked = "" if steps is None else f" for {steps:,} steps"
    raise BadInput(
        f"{minutes:g} minutes are too few{asked}: a training step of pre-norm takes {pace.step:.2g} s at this depth, "
        f"so that at least {math.ceil(min(needed) * 10) / 10:g} are needed"
    )


def most_kept(budget: float, ratios: Sequence[float], plan: HalvingPlan, pace: Pace) -> int:
    """How many connections go on at least: as many as ``budget``, in core-seconds, allows for the steps of ``plan``."""
    for kept in range(len(ratios), LEAST_KEPT, -1):
        fixed, a_step = halving_cost(ratios, plan.rungs, plan.seeds, pace, kept)
        if fixed + a_step * plan.steps <= budget:
            return kept
    return LEAST_KEPT


def halving_cost(
    ratios: Sequence[float], rungs: int, seeds: int, pace: Pace, kept: int = LEAST_KEPT
) -> tuple[float, float]:
    """Core-seconds of halving, with ``seeds`` in the last rung: those of set-up, and those for each step of the last
    rung."""
    fixed = a_step = 0.0
    for rung, share in enumerate(shares(rungs)):
        count = min(len(ratios), in_rung(rung, len(ratios), kept) + (rung > 0))  # pre-norm goes on in any case
        tries = FIRST_TRIES if rung == 0 else LATER_TRIES
        tries *= seeds if rung == rungs - 1 else 1
        fixed += tries * count * pace.setup
        a_step += tries * count * fmean(ratios) * pace.step * share
    return fixed, a_step


def seeds_that_fit(seconds: float, workers: int, runs: Sequence[float], start: float = 0.0) -> tuple[int, int]:
    """How many finalists, and how many seeds of each, fit ``seconds``; ``runs`` are the seconds of a run of each, and
    ``start`` those until workers have started."""
    budget = core_seconds(seconds, workers, start)
    for count in range(len(runs), 1, -1):
        seeds = int(budget / math.fsum(runs[:count]))
        if seeds >= LEAST_FINAL_SEEDS:
            return count, min(seeds, MOST_FINAL_SEEDS)
    return min(2, len(runs)), LEAST_FINAL_SEEDS - 1


def core_seconds(seconds: float, workers: int, starting: float) -> float:
    """What ``workers`` can compute in ``seconds``, less those in which they are ``starting``."""
    return max(seconds - starting, 0.0) * workers / MARGIN

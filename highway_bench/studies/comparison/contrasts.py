"""Contrasts: a connection against each other one of its family and depth, by success and by loss, with intervals.

Success and loss have 2.5 % each, so that 5 % hold for both together. For m connections the intervals of success have
the level 1 − 0.025/m (Bonferroni). Losses are compared as in the tables of ``decide``: t-tests that are paired by the
number of the seed, corrected by Holm. With another torch or machine equal seeds may have nothing in common; the test is
valid then too, and has less power.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from highway_bench.measure.paired import ALPHA, BETTER, UNDECIDED, UNKNOWN, WORSE, contrasts
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.studies.reproduce.quantities import rate_difference


@dataclass(frozen=True)
class BlockContrast:
    """A connection against ``other``. ``success`` is the difference of the shares of seeds that succeed; ``loss`` is
    the ratio of the final losses with its 95 % interval (NaN if they are not compared) and ``p`` its corrected p-value.
    """

    other: str
    success: IntervalEstimate
    loss: IntervalEstimate
    p: float

    @property
    def standing(self) -> str:
        """Better, worse or undecided: by success, then by loss."""
        if self.success.low > 0 or self.success.high < 0:
            return BETTER if self.success.low > 0 else WORSE
        if self.p < ALPHA / 2:
            return BETTER if self.loss.value < 1 else WORSE
        return UNDECIDED


@dataclass(frozen=True)
class BlockPosition:
    """A connection in one family at one ``depth``, and its ``contrasts`` with the other connections there. ``loss`` is
    the geometric mean with its 95 % interval (NaN if a seed diverged or has a loss of 0)."""

    family: str
    dataset: str
    depth: int
    rate: float
    successes: int
    runs: int
    loss: IntervalEstimate
    contrasts: tuple[BlockContrast, ...]

    def count(self, standing: str) -> int:
        """The number of connections against which it has this standing."""
        return sum(contrast.standing == standing for contrast in self.contrasts)

    @property
    def ranks(self) -> tuple[int, int]:
        """The first and the last rank that it may have among all of them; rank 1 is the best."""
        return 1 + self.count(WORSE), 1 + len(self.contrasts) - self.count(BETTER)


def contrasts_of(mine: pd.DataFrame, others: Sequence[pd.DataFrame]) -> tuple[BlockContrast, ...]:
    """Compare the ``finals`` of a connection at one rung with those of each of ``others``.

    The difference of shares has Newcombe's interval. Losses are compared by the geometric mean of their ratios over
    common seeds; a diverged run counts with the largest finite loss of both. They are not compared unless more than
    half of the seeds of both succeed: no verdict against an untrained reference.
    """
    by_block = {str(other["block"].iloc[0]): other for other in others}
    ratios = {block: log_ratios(mine, other) for block, other in by_block.items() if trained(mine) and trained(other)}
    ratios = {block: by_seed for block, by_seed in ratios.items() if len(by_seed) > 1}
    equal = {seed: 0.0 for by_seed in ratios.values() for seed in by_seed}  # the connection against itself
    losses = contrasts({"": equal, **ratios}, "") if ratios else {}
    results = []
    for block, other in by_block.items():
        success = difference_of_shares(counts(mine), counts(other), 1 - ALPHA / 2 / len(others))
        loss, p = UNKNOWN, math.nan
        if block in losses:
            log, p = losses[block].difference, losses[block].p
            loss = IntervalEstimate(math.exp(log.value), math.exp(log.low), math.exp(log.high), log.n)
        results.append(BlockContrast(block, success, loss, p))
    return tuple(results)


def counts(runs: pd.DataFrame) -> tuple[int, int]:
    """The number of ``runs`` that succeed, and of all."""
    return int(runs["success"].sum()), len(runs)


def trained(runs: pd.DataFrame) -> bool:
    """Whether more than half of ``runs`` succeed."""
    successes, every = counts(runs)
    return 2 * successes > every


def log_ratios(mine: pd.DataFrame, other: pd.DataFrame) -> dict[int, float]:
    """By common seed: the logarithm of my final loss over the other's, with the largest finite loss for a diverged
    run. Empty where a loss is 0, which has no ratio."""
    losses = [{int(seed): float(loss) for seed, loss in zip(one["seed"], one["loss"], strict=True)}
              for one in (mine, other)]  # fmt: skip
    finite = [loss for one in losses for loss in one.values() if math.isfinite(loss)]
    if not finite or min(finite) <= 0:
        return {}
    worst, seeds = max(finite), sorted(losses[0].keys() & losses[1].keys())
    pairs = {seed: [one[seed] if math.isfinite(one[seed]) else worst for one in losses] for seed in seeds}
    return {seed: math.log(first / second) for seed, (first, second) in pairs.items()}


def difference_of_shares(one: tuple[int, int], other: tuple[int, int], confidence: float) -> IntervalEstimate:
    """The difference of two shares, each given as (successes, runs), with Newcombe's interval."""
    points = rate_difference("", one, other, confidence)
    return IntervalEstimate(points.value / 100, points.low / 100, points.high / 100, points.n)


def ratio_of_means(here: pd.DataFrame, there: pd.DataFrame, confidence: float) -> IntervalEstimate:
    """The ratio of the geometric mean losses of two sets of runs of one connection, with the interval of the pooled
    two-sample t test of the logarithms. NaN if a run diverged or has a loss of 0.

    The runs are not paired: with another torch or machine the same seed may give other weights or another order.
    """
    one, other = (np.log(table["loss"].to_numpy(dtype=float)) for table in (here, there))
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return UNKNOWN
    interval = stats.ttest_ind(one, other).confidence_interval(confidence)
    value, low, high = (math.exp(bound) for bound in (one.mean() - other.mean(), interval.low, interval.high))
    return IntervalEstimate(value, low, high, len(one) + len(other))

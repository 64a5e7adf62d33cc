"""How deep a block trains, from the share of successful runs at each depth of a ladder.

``verdict`` judges one depth. ``l_max`` is the rule (the largest depth that trains while every smaller one trains too),
``l50`` an estimate with an interval; both are censored at the ends of the ladder. ``area_under_success`` is a share.
``largest_rise`` tests whether success falls with depth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
import scipy  # a part of it is imported at its first use
from numpy.typing import NDArray

from highway_bench.errors import BadInput
from highway_bench.measure.paired import UNDECIDED
from highway_bench.measure.statistics import CONFIDENCE, RESAMPLES, Array, check_counts, checked_confidence

TRAINABLE = 0.9  # share of seeds that must succeed
FULL_SEEDS = 10  # with fewer seeds a verdict is provisional
LEAST_SEEDS = 5  # with fewer seeds there is no verdict
ROUNDING = 1e-9  # 0.9 · n is not exact in binary

TRAINS, SLOW, FAILS, DIVERGES, NOT_RUN = "trains", "slow", "fails", "diverges", "not measured"
TOO_FEW_SEEDS, RATE, NO_VERDICT = "not enough seeds", "rate", "no verdict"  # why there is no outcome yet, as UNDECIDED
JUDGED: Final = (TRAINS, FAILS, DIVERGES)
"""The outcomes by which a connection is taken or avoided."""
TIMES_CHANCE: Final = 3
"""A net of so many times the accuracy of the best constant prediction has learnt something."""


def verdict(successes: int, runs: int, unfinished: int = 0, diverged: int = 0) -> str:
    """The verdict on one depth from its ``runs``, ``diverged`` ones among them. Runs that did not finish might have
    succeeded or failed: the verdict must hold in both cases."""
    if runs == 0:
        return NOT_RUN
    if runs + unfinished < LEAST_SEEDS:
        return TOO_FEW_SEEDS
    least = TRAINABLE * (runs + unfinished) - ROUNDING
    if successes >= least:
        return DIVERGES if diverged else TRAINS
    if successes + unfinished >= least:
        return UNDECIDED
    return DIVERGES if 2 * diverged > runs - successes else FAILS


Success = Mapping[int, tuple[int, int]]  # depth → (runs that succeeded, runs)
Censored = Literal["left", "right"] | None


@dataclass(frozen=True)
class LMax:
    """The largest depth that trains while every smaller one trains too; ``None`` (``left``) if the smallest fails.

    ``right``: every depth of the ladder trains. ``provisional``: some used depth had fewer than ``FULL_SEEDS``.
    """

    value: int | None
    shallowest: int
    censored: Censored
    provisional: bool


@dataclass(frozen=True)
class L50:
    """The depth at which half of the runs succeed, with its interval.

    If L50 lies outside the ladder, ``value`` is the ladder's depth next to it, and ``censored`` gives the side:
    ``right`` if L50 is larger, ``left`` if it is smaller. A censored value is a bound and must not be averaged. Where
    no depth of the ladder bounds the interval, ``high`` is infinite or ``low`` is 0.
    """

    value: float
    low: float
    high: float
    censored: Censored

    def __str__(self) -> str:
        if self.censored:
            return f"{'>' if self.censored == 'right' else '<'} {self.value:.4g}"
        low = "below the ladder" if self.low == 0 else f"{self.low:.3g}"
        high = "beyond the ladder" if math.isinf(self.high) else f"{self.high:.3g}"
        return f"{self.value:.3g} [{low}, {high}]"


def l_max(success: Success, share: float = TRAINABLE) -> LMax:
    """L_max of ``success``. A depth trains if at least ``share`` of its seeds succeed.

    Raises ``BadInput`` without a depth, for a depth below 1, and for impossible counts.
    """
    ladder = _ladder(success)
    reached: int | None = None
    provisional = False
    for depth, k, n in ladder:
        provisional = provisional or n < FULL_SEEDS
        if k < share * n - ROUNDING:
            break
        reached = depth
    censored: Censored = "left" if reached is None else "right" if reached == ladder[-1][0] else None
    return LMax(reached, ladder[0][0], censored, provisional)


def l50(success: Success, confidence: float = CONFIDENCE, *, seed: int = 0) -> L50:
    """The depth at which a decreasing isotonic fit of the success rate, linear in log depth between depths, is 1/2.

    The interval is a percentile bootstrap over the seeds, resampled within each depth. It always contains the two
    depths that bracket the crossing: where all seeds agree, resampling shows no spread, but nothing was measured
    between the two depths. Raises ``BadInput`` as ``l_max`` does.
    """
    ladder = _ladder(success)
    depths, counts, totals = (np.array(column) for column in zip(*ladder, strict=True))
    best = _crossing(depths, counts / totals, totals)

    draws = np.random.default_rng(seed).binomial(totals, counts / totals, size=(RESAMPLES, len(totals)))
    resampled, times = np.unique(draws, axis=0, return_counts=True)  # few distinct draws: fit each once
    crossings = np.repeat([_crossing(depths, row / totals, totals).middle for row in resampled], times)
    tail = (1 - checked_confidence(confidence)) / 2
    low = min(float(np.quantile(crossings, tail, method="lower")), best.below)
    high = max(float(np.quantile(crossings, 1 - tail, method="higher")), best.above)

    censored: dict[float, Censored] = {math.inf: "right", 0.0: "left"}
    middle = min(max(best.middle, float(depths[0])), float(depths[-1]))
    return L50(middle, low, high, censored.get(best.middle))


def area_under_success(success: Success) -> float:
    """Area under the success rate against log depth, by trapezoids, as a share of the largest possible: 0 … 1.

    Raises ``BadInput`` as ``l_max`` does.
    """
    ladder = _ladder(success)
    rates = [k / n for _, k, n in ladder]
    if len(ladder) == 1:
        return rates[0]
    x = np.log([depth for depth, _, _ in ladder])
    return float(np.trapezoid(rates, x) / (x[-1] - x[0]))


class SuccessRise(NamedTuple):
    """The largest rise of the success rate with depth: from ``shallow`` to ``deep``.

    ``p`` is the probability of as much evidence against a success that never rises, if it never does."""

    shallow: int
    deep: int
    p: float


def largest_rise(success: Success, *, seed: int = 0) -> SuccessRise | None:
    """The largest rise over all pairs of depths; ``None`` where no deeper network succeeds more often.

    The evidence is the likelihood ratio of free success rates to the best rates that never rise (an isotonic fit), over
    all depths. Its distribution is simulated under that fit. Raises ``BadInput`` as ``l_max`` does."""
    depths, counts, totals = (np.array(column) for column in zip(*_ladder(success), strict=True))
    rates = counts / totals
    rise, shallow, deep = max(
        (rates[later] - rates[first], -first, later) for later in range(len(depths)) for first in range(later + 1)
    )
    if rise <= 0:
        return None
    falling = _falling(counts, totals)
    draws = np.random.default_rng(seed).binomial(totals, falling, size=(RESAMPLES, len(depths)))
    distinct, times = np.unique(draws, axis=0, return_counts=True)  # few distinct draws: fit each once
    evidence = _evidence(counts, totals) - 1e-9
    as_much = sum(int(often) for row, often in zip(distinct, times, strict=True) if _evidence(row, totals) >= evidence)
    return SuccessRise(int(depths[-shallow]), int(depths[deep]), (as_much + 1) / (RESAMPLES + 1))


def _falling(counts: Array, totals: Array) -> Array:
    """The most likely success rates that never rise with depth."""
    fit: Array = scipy.optimize.isotonic_regression(counts / totals, weights=totals, increasing=False).x
    return fit.clip(0.0, 1.0)


def _evidence(counts: Array, totals: Array) -> float:
    """The log likelihood of free rates minus that of rates that never rise."""

    def likelihood(rates: Array) -> float:
        return float((scipy.special.xlogy(counts, rates) + scipy.special.xlogy(totals - counts, 1 - rates)).sum())

    return likelihood(counts / totals) - likelihood(_falling(counts, totals))


class _Crossing(NamedTuple):
    """The depth at which a fit crosses one half, and the ladder's depths on both sides of it.

    Values beyond the largest depth are infinite, values below the smallest are 0."""

    middle: float
    below: float
    above: float


def _crossing(depths: NDArray[np.int_], rates: Array, weights: NDArray[np.int_]) -> _Crossing:
    fit = scipy.optimize.isotonic_regression(rates, weights=weights, increasing=False).x - 0.5
    fit[np.abs(fit) < 1e-12] = 0.0  # pooled rates that are one half but for rounding
    if fit[-1] > 0:
        return _Crossing(math.inf, float(depths[-1]), math.inf)
    if fit[0] < 0:
        return _Crossing(0.0, 0.0, float(depths[0]))
    over, level, under = (np.flatnonzero(test) for test in (fit > 0, fit == 0, fit < 0))
    below = float(depths[over[-1]]) if len(over) else 0.0
    above = float(depths[under[0]]) if len(under) else math.inf
    if len(level):  # where the fit is level at one half, the crossing is the geometric middle
        middle = math.sqrt(depths[level[0]] * depths[level[-1]])
    else:
        drop = fit[over[-1]] - fit[under[0]]
        middle = below * (above / below) ** float(fit[over[-1]] / drop)
    return _Crossing(middle, below, above)


def _ladder(success: Success) -> list[tuple[int, int, int]]:
    """(depth, successes, runs), sorted by depth."""
    if not success:
        raise BadInput("there is no depth")
    for depth, (k, n) in success.items():
        check_counts(k, n)
        if depth < 1:
            raise BadInput(f"a depth is at least 1, not {depth}")
    return sorted((depth, k, n) for depth, (k, n) in success.items())

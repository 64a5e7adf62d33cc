"""The frontier of depth: how deep a block trains, from successes over seeds at each rung of a ladder.

``l_max`` is the rule (the deepest rung that trains, with none failing before it), ``l50`` the estimate with its
interval; both are censored where the ladder ends. Needs numpy and scipy and no torch, as ``statistics`` does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from highway_bench.errors import BadInput
from highway_bench.measure.statistics import CONFIDENCE, RESAMPLES, Array, _counted, _level

TRAINABLE = 0.9  # share of seeds that must succeed
FULL_SEEDS = 10  # fewer make a verdict provisional

Success = Mapping[int, tuple[int, int]]  # depth → (runs that succeeded, runs)
Censored = Literal["left", "right"] | None


@dataclass(frozen=True)
class LMax:
    """The deepest rung that is trainable with no failing shallower one; ``None`` (``left``) where the shallowest fails.

    ``right``: the whole ladder is trainable. ``provisional``: some rung of the verdict had fewer than ten seeds.
    """

    value: int | None
    shallowest: int
    censored: Censored
    provisional: bool

    def __str__(self) -> str:
        depth = f"< {self.shallowest}" if self.value is None else f"{'≥ ' * (self.censored == 'right')}{self.value}"
        return depth + " (provisional)" * self.provisional


@dataclass(frozen=True)
class L50:
    """The depth at which half the runs succeed, with its interval.

    Where the ladder ends first, ``value`` is its last rung on that side and ``censored`` says which: ``right``, L50
    lies deeper; ``left``, shallower. A censored value is a bound and must not be averaged. An end of the interval that
    no rung bounds is infinite (``high``) or 0 (``low``).
    """

    value: float
    low: float
    high: float
    censored: Censored

    def __str__(self) -> str:
        if self.censored:
            return f"{'>' if self.censored == 'right' else '<'} {self.value:.4g}"
        ends = (
            "below the ladder" if self.low == 0 else f"{self.low:.3g}",
            "beyond the ladder" if math.isinf(self.high) else f"{self.high:.3g}",
        )
        return f"{self.value:.3g} [{ends[0]}, {ends[1]}]"


def l_max(success: Success, share: float = TRAINABLE) -> LMax:
    """Read ``success`` by the rule: a rung is trainable if at least ``share`` of its seeds succeed."""
    ladder = _ladder(success)
    reached: int | None = None
    provisional = False
    for depth, k, n in ladder:
        provisional = provisional or n < FULL_SEEDS
        if k < share * n - 1e-9:  # 0.9 · n is not exact in binary
            break
        reached = depth
    censored: Censored = "left" if reached is None else "right" if reached == ladder[-1][0] else None
    return LMax(reached, ladder[0][0], censored, provisional)


def l50(success: Success, confidence: float = CONFIDENCE, *, seed: int = 0) -> L50:
    """Where a falling (isotonic) fit of success rate on log depth crosses one half, straight between rungs.

    The interval is a percentile bootstrap over the seeds, resampled within each depth. It is never narrower than the
    two rungs that bracket the crossing: where every seed agrees, resampling shows no spread, but the ladder has not
    looked between its rungs.
    """
    ladder = _ladder(success)
    depths, counts, totals = (np.array(column) for column in zip(*ladder, strict=True))
    best = _crossing(depths, counts / totals, totals)

    draws = np.random.default_rng(seed).binomial(totals, counts / totals, size=(RESAMPLES, len(totals)))
    resampled, times = np.unique(draws, axis=0, return_counts=True)  # few distinct ones: fit each of them once
    crossings = np.repeat([_crossing(depths, row / totals, totals).middle for row in resampled], times)
    tail = (1 - _level(confidence)) / 2
    low = min(float(np.quantile(crossings, tail, method="lower")), best.below)
    high = max(float(np.quantile(crossings, 1 - tail, method="higher")), best.above)

    ends: dict[float, Censored] = {math.inf: "right", 0.0: "left"}
    middle = min(max(best.middle, float(depths[0])), float(depths[-1]))
    return L50(middle, low, high, ends.get(best.middle))


def area_under_success(success: Success) -> float:
    """Area under success rate against log depth, by trapezoids, as a share of the ladder's: 0 … 1."""
    ladder = _ladder(success)
    rates = [k / n for _, k, n in ladder]
    if len(ladder) == 1:
        return rates[0]
    x = np.log([depth for depth, _, _ in ladder])
    return float(np.trapezoid(rates, x) / (x[-1] - x[0]))


class _Crossing(NamedTuple):
    """Depth at which a fit crosses one half, and the rungs around it; infinite or 0 off the ladder's ends."""

    middle: float
    below: float
    above: float


def _crossing(depths: NDArray[np.int_], rates: Array, weights: NDArray[np.int_]) -> _Crossing:
    fit = optimize.isotonic_regression(rates, weights=weights, increasing=False).x - 0.5
    fit[np.abs(fit) < 1e-12] = 0.0  # pooled rates that are one half but for rounding
    if fit[-1] > 0:
        return _Crossing(math.inf, float(depths[-1]), math.inf)
    if fit[0] < 0:
        return _Crossing(0.0, 0.0, float(depths[0]))
    over, level, under = (np.flatnonzero(test) for test in (fit > 0, fit == 0, fit < 0))
    below = float(depths[over[-1]]) if len(over) else 0.0
    above = float(depths[under[0]]) if len(under) else math.inf
    if len(level):  # a stretch at one half is crossed in its middle
        middle = math.sqrt(depths[level[0]] * depths[level[-1]])
    else:
        drop = fit[over[-1]] - fit[under[0]]
        middle = below * (above / below) ** float(fit[over[-1]] / drop)
    return _Crossing(middle, below, above)


def _ladder(success: Success) -> list[tuple[int, int, int]]:
    """(depth, successes, runs), shallowest first."""
    if not success:
        raise BadInput("there is no depth")
    for depth, (k, n) in success.items():
        _counted(k, n)
        if depth < 1:
            raise BadInput(f"a depth is at least 1, not {depth}")
    return sorted((depth, k, n) for depth, (k, n) in success.items())

"""Statistics: what samples, seeds and trials allow to be said, and how surely.

Needs numpy and scipy only, so that reports can use it without torch. Randomness is seeded: the same data give the
same interval. A single value has no interval: ``low`` and ``high`` are then NaN. Values must be finite; a run that
diverged has no place in a mean (it ranks last: see ``best_of_k``, and success counts for the rest).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from highway_bench.errors import BadInput

CONFIDENCE = 0.95
RESAMPLES = 2000
TRAINABLE = 0.9  # share of seeds that must succeed
FULL_SEEDS = 10  # fewer make a verdict provisional

Array = NDArray[np.float64]
Success = Mapping[int, tuple[int, int]]  # depth → (runs that succeeded, runs)
Censored = Literal["left", "right"] | None


class Interval(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A value, the ends of its interval (NaN where ``n`` is too small for one) and the number of values behind it."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        ends = f"(n = {self.n})" if math.isnan(self.low) else f"[{self.low:.3g}, {self.high:.3g}]"
        return f"{self.value:.3g} {ends}"


# ----------------------------------------------------------------------------------------------------- intervals

def wilson(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a success rate (Wilson 1927): 4 of 5 gives [0.376, 0.964]."""
    _counted(successes, n)
    interval = stats.binomtest(successes, n).proportion_ci(_level(confidence), method="wilson")
    return Interval(float(interval.low), float(interval.high))


def t_interval(values: Iterable[float], confidence: float = CONFIDENCE) -> Estimate:
    """Mean ± t · s/√n with Student's t at n − 1 degrees of freedom, s the sample's standard deviation."""
    data, n = _finite(values)
    middle = float(data.mean())
    if n == 1:
        return Estimate(middle, math.nan, math.nan, 1)
    half = float(stats.t.ppf((1 + _level(confidence)) / 2, n - 1) * data.std(ddof=1) / math.sqrt(n))
    return Estimate(middle, middle - half, middle + half, n)


def log10_interval(values: Iterable[float], confidence: float = CONFIDENCE) -> Estimate:
    """``t_interval`` of log₁₀, taken back to the values' own scale: geometric mean and its interval, for losses."""
    data, n = _finite(values, positive=True)
    logs = t_interval(np.log10(data), confidence)
    return Estimate(10**logs.value, 10**logs.low, 10**logs.high, n)


def median_interval(values: Iterable[float], confidence: float = CONFIDENCE, *, seed: int = 0) -> Estimate:
    """Median with a percentile bootstrap interval (too narrow below some ten values; use ``t_interval`` for seeds)."""
    data, n = _finite(values)
    middle = float(np.median(data))
    if n == 1:
        return Estimate(middle, math.nan, math.nan, 1)
    interval = stats.bootstrap((data,), np.median, n_resamples=RESAMPLES, confidence_level=_level(confidence),
                               method="percentile", rng=np.random.default_rng(seed)).confidence_interval
    return Estimate(middle, float(interval.low), float(interval.high), n)


def paired_ratio(a: Iterable[float], b: Iterable[float], confidence: float = CONFIDENCE, *, seed: int = 0) -> Estimate:
    """How many times ``b`` ``a`` is, from samples taken in turn: exp of the median of log(aᵢ/bᵢ), bootstrapped.

    On the log scale, so that the ratio of b to a is exactly one over it. ``value`` is the median of the per-round
    ratios (of an even number, the geometric mean of the middle two).
    """
    first, n = _finite(a, positive=True)
    second, m = _finite(b, positive=True)
    if n != m:
        raise BadInput(f"paired samples need equal counts, not {n} and {m}")
    logs = median_interval(np.log(first) - np.log(second), confidence, seed=seed)
    return Estimate(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high), n)


def noise_floor(samples: Iterable[float], confidence: float = CONFIDENCE, *, seed: int = 0) -> float:
    """Least relative difference that these samples could tell: 0.02 means that 2 % may be noise.

    A against A: each even round is paired with the odd one after it, as if they were two steps, and the floor is how
    far from 1 the interval of their ratio reaches. Needs four rounds at least. With half as many pairs as a comparison
    of two steps has, it errs on the careful side.
    """
    data, n = _finite(samples, positive=True)
    if n < 4:
        raise BadInput(f"a noise floor needs 4 rounds or more, not {n}")
    pairs = data[: n - n % 2].reshape(-1, 2)
    ratio = paired_ratio(pairs[:, 0], pairs[:, 1], confidence, seed=seed)
    return max(1 / ratio.low, ratio.high) - 1


# ------------------------------------------------------------------------------------------- trials and comparisons

def best_of_k(values: Iterable[float], k: int, minimise: bool = True) -> float:
    """Expected best of ``k`` of these trials drawn without replacement: unbiased for the best of k fresh ones.

    With values ascending, the minimum is Σᵢ v₍ᵢ₎ C(n−i, k−1) / C(n, k), i = 1 … n−k+1. A diverged trial is ``inf``
    (``-inf`` where more is better) and ranks last; the expectation is infinite where k such trials can be drawn
    together.
    """
    ranked = sorted(value if minimise else -value for value in values)
    n = len(ranked)
    if not 1 <= k <= n:
        raise BadInput(f"best of {k} needs between 1 and {n} trials")
    if any(math.isnan(value) for value in ranked):
        raise BadInput("a trial without a value must be given as infinite, not NaN")
    total = math.comb(n, k)
    best = math.fsum(value * (math.comb(n - i, k - 1) / total) for i, value in enumerate(ranked[: n - k + 1], start=1))
    return best if minimise else -best


def permutation_minimum_p(n: int, m: int) -> float:
    """Smallest two-sided p that a permutation test of n against m values can give: 2 / C(n + m, n)."""
    if n < 1 or m < 1:
        raise BadInput(f"a permutation test needs values on both sides, not {n} and {m}")
    return min(1.0, 2 / math.comb(n + m, n))


def sign_flip_minimum_p(n: int) -> float:
    """Smallest two-sided p that a paired sign-flip test of ``n`` pairs can give: 2 / 2ⁿ."""
    if n < 1:
        raise BadInput(f"a sign-flip test needs a pair at least, not {n}")
    return 2.0 ** (1 - n)


def pairs_needed(comparisons: int, alpha: float = 0.05) -> int:
    """Fewest pairs (seeds) with which one of ``comparisons`` sign-flip tests, Holm-corrected, can beat ``alpha``."""
    if comparisons < 1 or not 0 < alpha < 1:
        raise BadInput(f"needs one comparison or more and 0 < alpha < 1, not {comparisons} and {alpha}")
    n = 1
    while comparisons * sign_flip_minimum_p(n) >= alpha:
        n += 1
    return n


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values (Holm 1979), in the order given."""
    if not all(0 <= p <= 1 for p in p_values):
        raise BadInput(f"p-values lie between 0 and 1, not {list(p_values)}")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


# ----------------------------------------------------------------------------------------- the frontier of depth

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
        ends = "below the ladder" if self.low == 0 else f"{self.low:.3g}", \
            "beyond the ladder" if math.isinf(self.high) else f"{self.high:.3g}"
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


# ------------------------------------------------------------------------------------------------------- checks

def _finite(values: Iterable[float], *, positive: bool = False) -> tuple[Array, int]:
    data = np.asarray(list(values), dtype=np.float64)
    if not len(data):
        raise BadInput("there are no values")
    if not np.isfinite(data).all():
        raise BadInput("values must be finite")
    if positive and not (data > 0).all():
        raise BadInput(f"values must be above 0, not {data.min():g}")
    return data, len(data)


def _level(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise BadInput(f"a confidence lies between 0 and 1, not {confidence}")
    return confidence


def _counted(successes: int, n: int) -> None:
    if not 0 <= successes <= n or n < 1:
        raise BadInput(f"{successes} of {n} is not a success rate")


def _ladder(success: Success) -> list[tuple[int, int, int]]:
    """(depth, successes, runs), shallowest first."""
    if not success:
        raise BadInput("there is no depth")
    for depth, (k, n) in success.items():
        _counted(k, n)
        if depth < 1:
            raise BadInput(f"a depth is at least 1, not {depth}")
    return sorted((depth, k, n) for depth, (k, n) in success.items())

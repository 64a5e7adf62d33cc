"""Power before a run: which effect can a design show, and how many seeds would show the claim's own?

A design is a statistic, its number of runs, its confidence and the scatter of one run. Its interval is simulated for a
true value of 0 and a scatter of 1; another true value shifts the interval, and another scatter stretches it. Therefore
one simulation serves every effect. Ratios are in decades. The draws have a fixed seed: a design always has the same
power.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from highway_bench.measure.statistics import Array
from highway_bench.studies.reproduce.quantities import (
    BEST_OF,
    Region,
    Statistic,
    best_reach,
    expected_best,
    order_p,
    rate,
    rate_difference,
)

TARGET = 0.8  # the power that a claim should have
DRAWS, DRAWS_OF_SEARCHES = 4_000, 300
MOST = 100  # runs: larger designs are not proposed
LARGER_SEARCHES = (120, 240, 480)  # trials, which cost less than runs
MOST_TRIALS = max(LARGER_SEARCHES)


@dataclass(frozen=True)
class Power:
    """The power of a design for a claim.

    ``power`` is the probability of "reproduced" if the true value is ``effect``; NaN if there is no such value.
    ``smallest`` is the value nearest to the claim's bound that is shown with a probability of ``TARGET``; NaN if there
    is none. ``needed`` is the least number of runs with the power ``TARGET`` for ``effect``; ``None`` if ``MOST`` runs
    (``MOST_TRIALS`` trials) lack it. ``steady`` is the scatter with which ``n`` runs have it; NaN if none has.
    """

    n: int
    effect: float
    power: float
    smallest: float
    needed: int | None
    steady: float


@dataclass(frozen=True)
class PowerDesign:
    """A statistic of ``n`` runs (seeds of an arm, or trials of a search) whose single values have the standard
    deviation ``scatter``: in decades for a ratio, else in the quantity's unit."""

    statistic: Statistic
    n: int
    confidence: float
    scatter: float
    region: Region
    ratio: bool
    least: int = 2  # fewer runs decide nothing

    def power(self, effect: float, n: int | None = None) -> float:
        """The probability that the whole interval lies in the region if the true value is ``effect``."""
        size = self.n if n is None else n
        if size < self.least and self.statistic is not Statistic.SHARE:
            return 0.0
        if self.statistic is Statistic.RATES:
            shares = (0.5 + effect / 200, 0.5 - effect / 200)  # of all with this difference those that scatter most
            one, other = (stats.binom.pmf(np.arange(size + 1), size, share) for share in shares)
            return float(one @ shown_pairs(size, self.confidence, self.region) @ other)
        if self.statistic.counts:
            shown = shown_counts(self.statistic, size, self.confidence, self.region)
            return float(stats.binom.pmf(shown, size, effect / 100).sum())
        low, high = intervals(self.statistic, size, self.confidence)
        least, most, true = map(self._scaled, (self.region.least, self.region.most, effect))
        return float(np.mean((true + self.scatter * low > least) & (true + self.scatter * high < most)))

    def smallest(self) -> float:
        """The true value nearest to the region's only bound that is shown with ``TARGET``; NaN if there is none."""
        if not self.statistic.counts:
            edge, reach = self._reach()
            value = edge - self.scatter * reach
            return 10**value if self.ratio else value
        one_sided = math.isinf(self.region.least) != math.isinf(self.region.most)
        if not one_sided or (self.n < self.least and self.statistic is not Statistic.SHARE):
            return math.nan
        least = -100 if self.statistic is Statistic.RATES else 0
        values = np.linspace(least, 100, 10 * (100 - least) + 1)
        shown = [value for value in values if self.power(float(value)) >= TARGET]
        return float((max if math.isfinite(self.region.most) else min)(shown)) if shown else math.nan

    def needed(self, effect: float) -> int | None:
        """The least number of runs with the power ``TARGET`` for ``effect``; more than the design's if these lack it.

        (The power of counts may fall from one number of runs to the next.)"""
        fewest = self.least if self.power(effect) >= TARGET else self.n
        sizes: Iterable[int] = (
            (*range(20, MOST + 1, 20), *LARGER_SEARCHES)
            if self.statistic is Statistic.BEST
            else range(self.least, MOST + 1)
        )
        return next((n for n in sizes if n >= fewest and self.power(effect, n) >= TARGET), None)

    def summary(self, effect: float) -> Power:
        """The power for ``effect``."""
        if math.isnan(effect):
            return Power(self.n, effect, math.nan, self.smallest(), None, math.nan)
        power, steady = self.power(effect), self.steady(effect)
        return Power(self.n, effect, power, self.smallest(), self.needed(effect), steady)

    def steady(self, effect: float) -> float:
        """The scatter with which this number of runs has the power ``TARGET`` for ``effect``; NaN if none has, and for
        counts and a region with two bounds."""
        edge, reach = self._reach()
        scatter = (edge - self._scaled(effect)) / reach
        return scatter if scatter > 0 else math.nan

    def _reach(self) -> tuple[float, float]:
        """The region's only bound, and the distance from the true value that an interval of scatter 1 keeps to in
        ``TARGET`` of repetitions, negative towards a lower bound. NaN for counts and for what decides nothing."""
        below = math.isfinite(self.region.most)
        if self.statistic.counts or math.isfinite(self.region.least) == below or self.n < self.least:
            return math.nan, math.nan
        low, high = intervals(self.statistic, self.n, self.confidence)
        edge = self._scaled(self.region.most if below else self.region.least)
        return edge, float(np.quantile(high, TARGET) if below else np.quantile(low, 1 - TARGET))

    def _scaled(self, value: float) -> float:
        if not self.ratio or math.isinf(value):
            return value
        return math.log10(value) if value > 0 else -math.inf


@cache
def shown_counts(statistic: Statistic, n: int, confidence: float, region: Region) -> list[int]:
    """The counts of ``n`` runs that show a claim: their share, or its whole interval, lies in the region."""
    shown = []
    for k in range(n + 1):
        one = rate("", k, n, confidence) if statistic is Statistic.RATE else None
        low, high = (one.low, one.high) if one else (100 * k / max(n, 1),) * 2
        if region.has(low, high):
            shown.append(k)
    return shown


@cache
def shown_pairs(n: int, confidence: float, region: Region) -> Array:
    """Which pairs of counts, each of ``n`` runs, show a claim on the difference of two rates: (n + 1, n + 1)."""
    differences = [[rate_difference("", (k, n), (j, n), confidence) for j in range(n + 1)] for k in range(n + 1)]
    return np.array([[region.has(one.low, one.high) for one in row] for row in differences])


@cache
def intervals(statistic: Statistic, n: int, confidence: float) -> tuple[Array, Array]:
    """Simulated bounds of the interval of a quantity whose true value is 0 and whose scatter is 1; NaN where the design
    has no interval."""
    rng = np.random.default_rng(0)
    none = np.full(1, math.nan)
    if statistic is Statistic.EXACT:
        return np.zeros(1), np.zeros(1)
    if n < 2:
        return none, none
    if statistic is Statistic.ORDER:
        if order_p(n) > 1 - confidence:  # at best suggestive
            return none, none
        over, under = rng.normal(size=(2, DRAWS, n))
        return over.min(axis=1) - under.max(axis=1), over.max(axis=1) - under.min(axis=1)
    if statistic is Statistic.BEST:
        if n < 2 * BEST_OF:
            return none, none
        share = 1 if n <= MOST else 2  # a large search takes long to draw, and its interval varies less
        over, under = 10 ** rng.normal(size=(2, DRAWS_OF_SEARCHES // share, n))
        value = expected_best(over) - expected_best(under)
        reach = np.array([best_reach(one, other, confidence) for one, other in zip(over, under, strict=True)])
        return value - reach, value + reach
    # The mean and the standard deviation of n normal values are independent
    if statistic is Statistic.APART:
        spread = np.sqrt(rng.chisquare(n - 1, size=(2, DRAWS)) / (n - 1)).sum(axis=0)
        difference = math.sqrt(2 / n) * rng.normal(size=DRAWS)
        reach = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * spread / math.sqrt(n)
        return difference - reach, difference + reach
    values = math.sqrt(2) if statistic is Statistic.PAIRED else 1.0  # a difference of two runs
    middle = values * rng.normal(size=DRAWS) / math.sqrt(n)
    deviation = values * np.sqrt(rng.chisquare(n - 1, size=DRAWS) / (n - 1))
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * deviation / math.sqrt(n)
    return middle - half, middle + half

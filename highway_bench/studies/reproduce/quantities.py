"""Quantities: what a claim is about as a number with an interval, and the regions in which the number must lie."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy import stats
from scipy.special import comb

from highway_bench.measure.statistics import CONFIDENCE, Array, IntervalEstimate, t_interval, wilson
from highway_bench.report.format import between, count, signed, three

BEST_OF = 20
"""Trials whose expected best is compared; it is estimated from several times as many."""


class Statistic(StrEnum):
    """How the interval of a quantity comes from the runs; the value is its name in a rule."""

    PAIRED = "t interval of log₁₀, paired by seed"  # the ratio of two arms' losses
    MEAN = "t interval"  # a number of one run, over seeds (of its log₁₀ for a ratio), or a slope
    APART = "intervals apart"  # the difference of two numbers that were not measured in turn
    BEST = "jackknife over trials"  # the ratio of the expected best losses of two searches
    ORDER = "range of all pairs of runs"  # the ratio of two arms, every run against every run
    RATES = "Newcombe interval"  # the difference of two arms' rates of runs with a property
    RATE = "Wilson interval"  # the share of runs with a property, as the rate of such runs
    SHARE = "count; Wilson's interval does not decide"  # the share of runs with a property, of these runs alone
    EXACT = "exact"  # a number without scatter, or of a single run

    @property
    def counts(self) -> bool:
        """Whether runs are counted, whose scatter follows from the rate."""
        return self in (Statistic.RATES, Statistic.RATE, Statistic.SHARE)


@dataclass(frozen=True)
class Quantity:
    """A measured number with its interval (NaN where there is none) from ``n`` runs. ``unit`` is "×" for a ratio."""

    name: str
    value: float
    low: float
    high: float
    n: int
    unit: str = ""

    @classmethod
    def of(cls, name: str, estimate: IntervalEstimate, unit: str = "") -> Quantity:
        return cls(name, estimate.value, estimate.low, estimate.high, estimate.n, unit)

    @classmethod
    def exact(cls, name: str, value: float, unit: str = "", n: int = 1) -> Quantity:
        return cls(name, value, value, value, n, unit)

    def columns(self, name: str, bounds: str = "") -> dict[str, float]:
        """The value and its interval as columns of a table: ``name``, and ``low`` and ``high`` after ``bounds``."""
        return {name: self.value, f"{bounds}low": self.low, f"{bounds}high": self.high}

    def __str__(self) -> str:
        exact = self.low == self.high
        whole = exact and float(self.value).is_integer()
        unit = with_space(self.unit) if math.isfinite(self.value) else ""
        value = f"{count(self.value) if whole else three(self.value)}{unit}"
        interval = "" if exact else between(self.low, self.high)
        runs = f"(n = {self.n})" if self.n > 1 else ""
        return " ".join(filter(None, [f"{self.name}:" if self.name else "", value, interval, runs]))


@dataclass(frozen=True)
class Share(Quantity):
    """The percentage of runs with a property. These runs alone decide; in text it has Wilson's interval of the rate."""

    @classmethod
    def of_runs(cls, name: str, k: int, n: int) -> Share:
        """The share of ``n`` runs that ``k`` of them are; NaN without runs."""
        value = 100 * k / n if n else math.nan
        return cls(name, value, value, value, n, "%")

    def __str__(self) -> str:
        return str(rate(self.name, round(self.value * self.n / 100), self.n)) if self.n else super().__str__()


def with_space(unit: str) -> str:
    """``unit`` as it follows a number: "×" without a space, any other after one."""
    return unit if unit in ("", "×") else f" {unit}"


@dataclass(frozen=True)
class Region:
    """The numbers above ``least`` and below ``most``, with the bounds themselves if it is ``closed``."""

    least: float = -math.inf
    most: float = math.inf
    closed: bool = False

    def has(self, low: float, high: float) -> bool:
        """Whether the whole interval lies in the region."""
        above = low > self.least or (low == self.least and (self.closed or math.isinf(low)))
        return above and (high < self.most or (high == self.most and (self.closed or math.isinf(high))))

    def excludes(self, low: float, high: float) -> bool:
        """Whether the whole interval lies outside of the region."""
        return high < self.least or low > self.most

    def text(self, unit: str) -> str:
        """The region in words: "above 1×", "between 45 and 75 %"."""
        after = with_space(unit)
        if self.least == self.most:
            return f"equal to {bound_text(self.least)}{after}"
        if math.isfinite(self.least) and math.isfinite(self.most):
            return f"between {bound_text(self.least)} and {bound_text(self.most)}{after}"
        words = ("at least", "at most") if self.closed else ("above", "below")
        word, bound = (words[0], self.least) if math.isfinite(self.least) else (words[1], self.most)
        return f"{word} {bound_text(bound)}{with_space('point') if (bound, unit) == (1, 'points') else after}"


def bound_text(bound: float) -> str:
    """A bound as it was chosen, or three digits of one that is computed, such as 1 / 1.5."""
    return signed(bound) if bound == float(f"{bound:.4g}") else three(bound)


def mean(name: str, values: Iterable[float], confidence: float = CONFIDENCE, unit: str = "") -> Quantity:
    """The mean with its t interval; of a ratio (unit "×"), the geometric mean, with the t interval of log₁₀.

    Without a value, with one that is not finite, or with a ratio of 0, the quantity is NaN."""
    data = np.asarray(list(values), dtype=np.float64)
    if not len(data) or not np.isfinite(data).all() or (unit == "×" and not (data > 0).all()):
        return Quantity(name, math.nan, math.nan, math.nan, len(data), unit)
    if unit != "×":
        return Quantity.of(name, t_interval(data, confidence), unit)
    logs = t_interval(np.log10(data), confidence)
    return Quantity(name, 10**logs.value, 10**logs.low, 10**logs.high, logs.n, unit)


def rate(name: str, k: int, n: int, confidence: float = CONFIDENCE) -> Quantity:
    """The rate, in percent, of runs with a property that ``k`` of ``n`` have, with Wilson's interval; NaN of none."""
    if not n:
        return Quantity(name, math.nan, math.nan, math.nan, 0, "%")
    low, high = wilson(k, n, confidence)
    return Quantity(name, 100 * k / n, 100 * low, 100 * high, n, "%")


def rate_difference(name: str, one: tuple[int, int], other: tuple[int, int], confidence: float) -> Quantity:
    """The rate of runs with a property in ``one`` arm minus that in the ``other``, in points; NaN without runs. Each is
    (runs with it, runs).

    The interval joins those of Wilson: p₁ − p₂ ± √((p₁ − l₁)² + (u₂ − p₂)²) (Newcombe 1998, method 10,
    doi:10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I)."""
    ours, theirs = (rate("", *counts, confidence) for counts in (one, other))
    difference = ours.value - theirs.value
    low = difference - math.hypot(ours.value - ours.low, theirs.high - theirs.value)
    high = difference + math.hypot(ours.high - ours.value, theirs.value - theirs.low)
    return Quantity(name, difference, low, high, min(ours.n, theirs.n), "points")


def prediction(name: str, values: Iterable[float], confidence: float, unit: str = "") -> Quantity:
    """As ``mean``, with the interval for one more run: mean ± t · s · √(1 + 1/n)."""
    one = mean(name, values, confidence, unit)
    wider = math.sqrt(one.n + 1)  # than the interval of the mean
    if unit == "×":
        factor = (one.high / one.value) ** wider
        return replace(one, low=one.value / factor, high=one.value * factor)
    half = (one.high - one.value) * wider
    return replace(one, low=one.value - half, high=one.value + half)


def apart(name: str, one: IntervalEstimate | Quantity, other: IntervalEstimate | Quantity, unit: str = "") -> Quantity:
    """``one`` minus ``other``, from the differences of the ends of their intervals: wider than an interval of the
    difference. It does not hold 0 if the intervals are apart."""
    low, high = one.low - other.high, one.high - other.low
    return Quantity(name, one.value - other.value, low, high, min(one.n, other.n), unit)


def order(name: str, over: Sequence[float], under: Sequence[float]) -> Quantity:
    """The range of ``over`` / ``under`` over all pairs of runs, and the ratio of the medians.

    It lies above 1 if every number of ``over`` is above every one of ``under``. An infinite number is a miss; the ratio
    of two misses is NaN, which decides nothing."""

    def ratio(one: float, other: float) -> float:
        return math.nan if math.isinf(one) and math.isinf(other) else one / other

    n = min(len(over), len(under))
    if not n:
        return Quantity(name, math.nan, math.nan, math.nan, 0, "×")
    low, high = ratio(min(over), max(under)), ratio(max(over), min(under))
    return Quantity(name, ratio(float(np.median(over)), float(np.median(under))), low, high, n, "×")


def order_p(n: int) -> float:
    """The two-sided probability that n runs all precede n others without any difference: 2 / C(2n, n)."""
    return 2 / math.comb(2 * n, n)


def scatter_of(one: Quantity, confidence: float) -> float:
    """The standard deviation of one value from a t interval over ``n`` of them: in decades for a ratio, else in the
    unit; NaN without an interval."""
    ends = (one.low, one.high)
    if one.unit == "×":
        ends = (math.log10(one.low), math.log10(one.high)) if one.low > 0 else (math.nan, math.nan)
    if one.n < 2 or not all(map(math.isfinite, ends)):
        return math.nan
    return (ends[1] - ends[0]) / 2 * math.sqrt(one.n) / float(stats.t.ppf((1 + confidence) / 2, one.n - 1))


def expected_best(losses: Array, k: int = BEST_OF) -> Array:
    """log₁₀ of the best of ``k`` trials, its mean over all draws of ``k`` out of the losses on the last axis.

    Draws whose trials all diverged have no best and do not count. Where at least half of the draws are such, the
    expectation is infinite; it is NaN for fewer than ``k`` losses."""
    n = losses.shape[-1]
    if n < k:
        return np.full(losses.shape[:-1], math.nan)
    ranks = np.arange(1, n + 1)
    weights = comb(n - ranks, k - 1) / comb(n, k)  # of the i-th lowest loss to be the best of a draw
    with np.errstate(divide="ignore"):  # a loss of 0
        ranked = np.log10(np.sort(losses, axis=-1))
    ended = ~np.isposinf(ranked)
    known = (weights * ended).sum(axis=-1)
    total = (weights * np.where(ended, ranked, 0.0)).sum(axis=-1)
    return np.where(known > 0.5, total / np.where(known > 0.5, known, 1.0), math.inf)


def left_out(losses: Array) -> Array:
    """``losses`` without the first of them, without the second, and so on: (n, n − 1)."""
    n = len(losses)
    return np.broadcast_to(losses, (n, n))[~np.eye(n, dtype=bool)].reshape(n, n - 1)


def best_reach(over: Array, under: Array, confidence: float) -> float:
    """Half the width of the interval of log₁₀ of a ratio of expected bests: the jackknife's standard error over the
    trials, which are pairs where both searches have as many, times Student's t.

    Only the few lowest losses move an expected best, so t has as many degrees of freedom as if each ``BEST_OF`` trials
    were one value: ⌊n / ``BEST_OF``⌋ − 1. The jackknife's variance is not below the true one on average (Efron and
    Stein 1981, doi:10.1214/aos/1176345462). A percentile bootstrap of 60 trials covers less than it says. NaN for fewer
    than two draws of ``BEST_OF`` trials."""
    n = min(len(over), len(under))
    if n < 2 * BEST_OF:
        return math.nan
    one, other = (expected_best(left_out(losses)) for losses in (over, under))
    with np.errstate(invalid="ignore"):  # infinite without some trial: no interval
        parts = [one - other] if len(one) == len(other) else [one, other]
        variance = sum(float(part.var()) * (len(part) - 1) for part in parts)
    return float(stats.t.ppf((1 + confidence) / 2, n // BEST_OF - 1)) * math.sqrt(variance)


def best_ratio(name: str, over: Array, under: Array, confidence: float = CONFIDENCE) -> Quantity:
    """The expected best of ``BEST_OF`` trials, ``over`` / ``under``, with the interval of ``best_reach``; trials are
    pairs where there are as many.

    NaN if both expectations are infinite, and for searches with fewer trials. Without an interval if one of them is
    infinite, unless it is without any one trial too."""
    n = min(len(over), len(under))
    with np.errstate(invalid="ignore"):  # ∞ − ∞: both arms diverged
        value = float(expected_best(over) - expected_best(under))
    if math.isinf(value):
        surely = np.isinf(expected_best(left_out(over if value > 0 else under))).all()
        bound = 10**value if surely else math.nan
        return Quantity(name, 10**value, bound, bound, n, "×")
    half = best_reach(over, under, confidence)
    return Quantity(name, 10**value, 10 ** (value - half), 10 ** (value + half), n, "×")

"""Statistics: estimates with intervals from samples, seeds and trials.

Depends on numpy and scipy only, so reports can use it without torch. A single value has no interval: ``low`` and
``high`` are NaN. Values must be finite: a diverged run cannot enter a mean. Instead it
lowers the success rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # a part of it is imported at its first use
from numpy.typing import NDArray

from ..errors import BadInput

CONFIDENCE = 0.95
RESAMPLES = 2000  # of a bootstrap
SHIFT_BY_WAITING = 0.1
"""The 95 % error of a ratio of two steps that waited for a core all the time; in proportion if they waited less.

Other programs on the core empty its caches, which costs one step more than another. The figure is from ``standard``
next to two busy loops on two cores, where steps waited half of the time (docs/results/cost.md).
"""

Array = NDArray[np.float64]


class Interval(NamedTuple):
    """The bounds of an interval."""

    low: float
    high: float


@dataclass(frozen=True)
class IntervalEstimate:
    """A value, the bounds of its interval (NaN where ``n`` is too small for one) and the number of values it comes
    from."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        bounds = f"(n = {self.n})" if math.isnan(self.low) else f"[{self.low:.3g}, {self.high:.3g}]"
        return f"{self.value:.3g} {bounds}"


# ----------------------------------------------------------------------------------------------------- intervals


def wilson(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval of a success rate (Wilson 1927). 4 of 5 gives [0.376, 0.964]."""
    check_counts(successes, n)
    interval = scipy.stats.binomtest(successes, n).proportion_ci(checked_confidence(confidence), method="wilson")
    return Interval(float(interval.low), float(interval.high))


def t_interval(values: Iterable[float], confidence: float = CONFIDENCE) -> IntervalEstimate:
    """Mean ± t · s/√n with Student's t at n − 1 degrees of freedom, s the sample's standard deviation."""
    data, n = _finite(values)
    middle = float(data.mean())
    if n == 1:
        return IntervalEstimate(middle, math.nan, math.nan, 1)
    half = float(scipy.stats.t.ppf((1 + checked_confidence(confidence)) / 2, n - 1) * data.std(ddof=1) / math.sqrt(n))
    return IntervalEstimate(middle, middle - half, middle + half, n)


def log10_interval(values: Iterable[float], confidence: float = CONFIDENCE) -> IntervalEstimate:
    """``t_interval`` of log₁₀ values, transformed back: the geometric mean and its interval, for losses."""
    data, n = _finite(values, positive=True)
    logs = t_interval(np.log10(data), confidence)
    return IntervalEstimate(10**logs.value, 10**logs.low, 10**logs.high, n)


def median_interval(values: Iterable[float], confidence: float = CONFIDENCE) -> IntervalEstimate:
    """Median with the interval of the sign test (Conover 1999, §3.2), valid for any distribution. Its bounds are two of
    the values: the least and the greatest of eight. No interval (NaN) below six values at 95 %."""
    data, n = _finite(values)
    bounds = scipy.stats.quantile_test(data, p=0.5).confidence_interval(checked_confidence(confidence))
    return IntervalEstimate(float(np.median(data)), float(bounds.low), float(bounds.high), n)


def hodges_lehmann(values: Iterable[float]) -> float:
    """The median of the means of all pairs of values, each with itself too (Hodges and Lehmann 1963).

    Nearly as robust as the median; for normal values its variance is 1.05 times the mean's, the median's 1.57 times.
    """
    data, n = _finite(values)
    first, second = np.triu_indices(n)
    return float(np.median((data[first] + data[second]) / 2))


def ratio_over_processes(
    a: Iterable[float],
    b: Iterable[float],
    process: Sequence[int],
    wall: Sequence[float] | None = None,
) -> IntervalEstimate:
    """Ratio a / b from samples that were taken in turn, in several processes.

    ``process[i]`` is the process of sample i. A process gives one number, the median of its log(aᵢ/bᵢ). ``value`` is
    their geometric mean and the interval is Student's t over the processes, which are the independent units (Kalibera
    and Jones, arXiv:2007.10899); ``n`` counts them. A single process has no interval.

    With ``wall``, the wall times of a's steps, the interval also covers the shift of all processes by other programs:
    ``SHIFT_BY_WAITING`` times the share of the wall time that a leaves out, as a second, independent error.
    """
    first, n = _finite(a, positive=True)
    second, m = _finite(b, positive=True)
    if not n == m == len(process):
        raise BadInput(f"paired samples need equal counts, not {n}, {m} and {len(process)}")
    logs, of = np.log(first) - np.log(second), np.asarray(process)
    ratio = t_interval([float(np.median(logs[of == number])) for number in np.unique(of)])
    waited = max(0.0, 1 - float(first.sum()) / math.fsum(wall)) if wall is not None else 0.0
    half = math.hypot(ratio.high - ratio.value, SHIFT_BY_WAITING * waited)
    return IntervalEstimate(math.exp(ratio.value), math.exp(ratio.value - half), math.exp(ratio.value + half), ratio.n)


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


def checked_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise BadInput(f"a confidence lies between 0 and 1, not {confidence}")
    return confidence


def check_counts(successes: int, n: int) -> None:
    if not 0 <= successes <= n or n < 1:
        raise BadInput(f"{successes} of {n} is not a success rate")

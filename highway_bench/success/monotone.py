"""Is success monotone in depth? A test over all depths of a ladder, and where success rises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.special import xlogy

from highway_bench.errors import BadInput
from highway_bench.measure.statistics import RESAMPLES, Array, check_counts
from highway_bench.success.ladder import Success


@dataclass(frozen=True)
class SuccessRise:
    """The largest rise of the success rate with depth: from ``shallow`` to ``deep``.

    ``p`` is the probability of as much evidence against a success that never rises, if it never does."""

    shallow: int
    deep: int
    p: float


def largest_rise(success: Success, *, seed: int = 0) -> SuccessRise | None:
    """The largest rise over all pairs of depths; ``None`` where no deeper network succeeds more often.

    The evidence is the likelihood ratio of free success rates to the best rates that never rise (an isotonic fit), over
    all depths. Its distribution is simulated under that fit. Raises ``BadInput`` without a depth and for impossible
    counts."""
    if not success:
        raise BadInput("there is no depth")
    for k, n in success.values():
        check_counts(k, n)
    depths = sorted(success)
    counts, totals = (np.array(column) for column in zip(*(success[depth] for depth in depths), strict=True))
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
    return SuccessRise(depths[-shallow], depths[deep], (as_much + 1) / (RESAMPLES + 1))


def _falling(counts: Array, totals: Array) -> Array:
    """The most likely success rates that never rise with depth."""
    fit: Array = optimize.isotonic_regression(counts / totals, weights=totals, increasing=False).x
    return fit.clip(0.0, 1.0)


def _evidence(counts: Array, totals: Array) -> float:
    """The log likelihood of free rates minus that of rates that never rise."""

    def likelihood(rates: Array) -> float:
        return float((xlogy(counts, rates) + xlogy(totals - counts, 1 - rates)).sum())

    return likelihood(counts / totals) - likelihood(_falling(counts, totals))

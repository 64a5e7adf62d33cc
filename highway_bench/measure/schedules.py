"""The steps of whole schedules that lead to a loss, from the losses after a few numbers of steps.

The mean losses at n steps follow L(n) = a + b·n^(−c), or where that law mispredicts a left-out rung, straight lines
between them in log n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from highway_bench.measure.statistics import CONFIDENCE, RESAMPLES, Array, IntervalEstimate

EXPONENTS: Final = np.geomspace(0.02, 3, 60)
"""The values of c that are tried; a and b follow by least squares."""
RUNGS: Final = 4
"""The least number of rungs: one is left out, and the law has three parameters."""


@dataclass(frozen=True)
class LossBySteps:
    """The mean ``losses`` after ``steps``, which increase, each with a standard ``error`` that is pooled over rungs at
    ``freedom`` degrees of freedom; ``law`` is whether the power law holds."""

    steps: Array
    losses: Array
    error: Array
    freedom: int
    law: bool

    @classmethod
    def of(cls, rungs: Mapping[int, Iterable[float]], *, within: float) -> LossBySteps | None:
        """From each seed's loss by number of steps; ``None`` for fewer than four rungs, for one of fewer than two
        seeds, and for losses that do not fall.

        The law holds if it predicts every inner rung from the others to ``within``, or to two standard errors of the
        difference."""
        values = [np.asarray(list(rungs[steps]), dtype=np.float64) for steps in sorted(rungs)]
        counts = np.array([len(one) for one in values])
        if len(values) < RUNGS or counts.min() < 2:
            return None
        steps, losses = np.array(sorted(rungs), dtype=np.float64), np.array([one.mean() for one in values])
        if losses.argmin() != len(losses) - 1:
            return None
        freedom = int(counts.sum() - len(counts))
        pooled = sum(float(((one - one.mean()) ** 2).sum()) for one in values) / freedom
        error = np.sqrt(pooled / counts)
        drawn = losses + error * np.random.default_rng(0).standard_normal((RESAMPLES, len(steps)))
        law = all(_predicts(steps, losses, drawn, rung, within) for rung in range(1, len(steps) - 1))
        return cls(steps, losses, error, freedom, law)

    def steps_to(self, loss: float, error: float = 0.0, freedom: int = 1) -> IntervalEstimate:
        """The steps to ``loss``, which has a standard error at ``freedom`` degrees of freedom.

        The interval is a parametric bootstrap: every mean is drawn from Student's t. Beyond the rungs the value is the
        last one and the upper bound infinite; before them it is the first one and the lower bound 0."""
        draws = np.random.default_rng(0)
        means = self.losses + self.error * draws.standard_t(self.freedom, (RESAMPLES, len(self.steps)))
        found = self._steps(means, loss + error * draws.standard_t(freedom, RESAMPLES))
        value = float(self._steps(self.losses[None], np.array([loss]))[0])
        outer = (1 - CONFIDENCE) / 2
        low = float(np.quantile(found, outer, method="lower"))
        high = float(np.quantile(found, 1 - outer, method="higher"))
        within = float(np.clip(value, self.steps[0], self.steps[-1]))
        return IntervalEstimate(within, min(low, value, within), max(high, value, within), freedom + 1)

    def _steps(self, means: Array, losses: Array) -> Array:
        """The steps from each row of ``means`` to each of ``losses``: 0 before the first rung, infinite after the last
        one."""
        if self.law:
            a, b, c = _law(self.steps, means)
            with np.errstate(all="ignore"):
                steps = np.where((b > 0) & (losses > a), ((losses - a) / b) ** (-1 / c), math.inf)
        else:
            falling, logs = np.minimum.accumulate(means, axis=1)[:, ::-1], np.log(self.steps)[::-1]
            by_row = zip(losses, falling, strict=True)
            steps = np.exp([np.interp(loss, row, logs, left=math.inf, right=-math.inf) for loss, row in by_row])
        return np.where(steps > self.steps[-1], math.inf, np.where(steps < self.steps[0], 0.0, steps))


def mean_error(values: Iterable[float]) -> tuple[float, float, int]:
    """The mean of at least two values, its standard error and the degrees of freedom."""
    data = np.asarray(list(values), dtype=np.float64)
    return float(data.mean()), float(scipy.stats.sem(data)), len(data) - 1


def _law(steps: Array, means: Array) -> tuple[Array, Array, Array]:
    """a, b and c of the least squares for each row of ``means``."""
    best: NDArray[Any] = np.full((4, len(means)), math.inf)  # squares, a, b, c
    for c in EXPONENTS:
        design = np.stack([np.ones_like(steps), steps**-c], axis=1)
        (a, b), *_ = np.linalg.lstsq(design, means.T, rcond=None)
        squares = ((design @ np.stack([a, b]) - means.T) ** 2).sum(axis=0)
        best = np.where(squares < best[0], np.stack([squares, a, b, np.full_like(a, c)]), best)
    return best[1], best[2], best[3]


def _predicts(steps: Array, losses: Array, drawn: Array, rung: int, within: float) -> bool:
    """Whether the law from all other rungs predicts the loss at ``rung``; ``drawn`` are rows of losses as they vary."""
    others = np.arange(len(steps)) != rung

    def missed(means: Array) -> Array:
        a, b, c = _law(steps[others], means[:, others])
        return np.asarray(a + b * steps[rung] ** -c - means[:, rung])

    return bool(abs(missed(losses[None])[0]) <= max(within, 2 * float(missed(drawn).std())))

"""Ridge-logistic regression in which some features may only lower the probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from highway_bench.measure.statistics import Array

RIDGE = 1.0


@dataclass(frozen=True)
class LogisticModel:
    """P(success) = σ(b + Σ w_j (f_j − m_j) / s_j), and m_j for a feature f_j that is missing."""

    means: Array
    deviations: Array
    weights: Array
    intercept: float

    def probability(self, features: Array) -> Array:
        """The probability for each row of ``features`` (n, features)."""
        p: Array = expit(self.intercept + self.standard(features) @ self.weights)
        return p

    def standard(self, features: Array) -> Array:
        """(f − m) / s, 0 where f is NaN."""
        return np.nan_to_num((features - self.means) / self.deviations, nan=0.0)


def fit_logistic(features: Array, success: Array, falls: Sequence[bool], ridge: float = RIDGE) -> LogisticModel:
    """The w and b of the least −Σ log P(observed) + ``ridge``/2 · ‖w‖², w_j ≤ 0 where ``falls``; a convex problem.

    ``features`` (n, features) may have NaN for missing ones; their means and deviations are those of known values. b
    has no penalty, so ``success`` (n,) needs both outcomes.
    """
    known = np.isfinite(features)
    counts = np.maximum(known.sum(0), 1)
    means = np.where(known, features, 0.0).sum(0) / counts
    spread = np.sqrt((np.where(known, features - means, 0.0) ** 2).sum(0) / counts)
    model = LogisticModel(means, np.where(spread > 0, spread, 1.0), np.zeros(features.shape[1]), 0.0)
    x, sign = np.column_stack([model.standard(features), np.ones(len(features))]), 2 * success - 1
    penalty = np.array([ridge] * features.shape[1] + [0.0])

    def loss(w: Array) -> tuple[float, Array]:
        margin = sign * (x @ w)
        gradient = -x.T @ (sign * expit(-margin)) + penalty * w
        return float(-log_expit(margin).sum() + 0.5 * (penalty * w**2).sum()), gradient

    bounds = [(None, 0.0 if fall else None) for fall in falls] + [(None, None)]
    w = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds).x
    return LogisticModel(model.means, model.deviations, w[:-1], float(w[-1]))

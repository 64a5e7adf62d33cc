"""The regression: known weights, the sign constraint, missing values."""

from __future__ import annotations

import numpy as np
import pytest

from highway_bench.forecast.logistic import fit_logistic


def data(weights: list[float], n: int = 4_000) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(1)
    x = source.normal(size=(n, len(weights)))
    return x, (source.random(n) < 1 / (1 + np.exp(-(x @ weights + 0.5)))).astype(float)


def test_the_weights_are_those_that_made_the_data() -> None:
    x, y = data([1.5, -1.0])
    model = fit_logistic(x, y, [False, False])
    assert model.weights == pytest.approx([1.5, -1.0], abs=0.2)
    assert model.probability(x).mean() == pytest.approx(y.mean(), abs=1e-3)


def test_a_feature_that_may_only_lower_the_probability_never_raises_it() -> None:
    x, y = data([1.5, -1.0])
    model = fit_logistic(x, y, [True, True])
    assert model.weights[0] == 0
    assert model.weights[1] < -0.5


def test_the_ridge_shrinks_weights_and_not_the_base_rate() -> None:
    x, y = data([1.5, -1.0])
    model = fit_logistic(x, y, [False, False], ridge=1e6)
    assert np.abs(model.weights).max() < 0.01
    assert model.probability(x) == pytest.approx(np.full(len(y), y.mean()), abs=0.01)


def test_missing_features_have_no_part_in_a_forecast() -> None:
    x, y = data([1.5, -1.0])
    x[::3, 0] = np.nan
    model = fit_logistic(np.column_stack([x, np.full(len(y), np.nan)]), y, [False] * 3)
    assert model.weights[2] == 0
    assert model.probability(np.full((1, 3), np.nan))[0] == pytest.approx(1 / (1 + np.exp(-model.intercept)))

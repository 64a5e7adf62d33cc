"""Intervals and standings of two connections, against published and hand-computed values."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.studies.comparison.contrasts import (
    BlockPosition,
    contrasts_of,
    log_ratios,
    ratio_of_means,
)


def runs(losses, successes=None, block="other"):
    count = len(losses) if successes is None else successes
    rows = [
        {"block": block, "seed": seed, "loss": loss, "success": float(seed < count)} for seed, loss in enumerate(losses)
    ]
    return pd.DataFrame(rows)


def test_losses_are_compared_seed_by_seed():
    mine = runs([0.1, 0.22, 0.4]).sample(frac=1, random_state=0)
    (result,) = contrasts_of(mine, [runs([0.2, 0.4, 0.8, 1.6])])
    logs = np.log([0.5, 0.55, 0.5])
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3)
    expected = [math.exp(bound) for bound in (logs.mean(), logs.mean() - half, logs.mean() + half)]
    assert [result.loss.value, result.loss.low, result.loss.high] == pytest.approx(expected)
    assert result.loss.n == 3
    assert result.p == pytest.approx(stats.ttest_1samp(logs, 0.0).pvalue)


def test_p_values_are_corrected_for_the_number_of_connections():
    mine, other = runs([0.1, 0.11, 0.12]), runs([0.2, 0.23, 0.22])
    (alone,) = contrasts_of(mine, [other])
    near = [runs([0.1, 0.12, 0.11], block="a"), runs([0.11, 0.1, 0.12], block="b")]
    first, *_ = contrasts_of(mine, [other, *near])
    assert first.p == pytest.approx(3 * alone.p)
    assert first.success.low < alone.success.low


def test_a_diverged_run_counts_with_the_largest_loss_and_a_loss_of_zero_has_no_ratio():
    assert log_ratios(runs([0.1, 0.1]), runs([0.4, math.nan])) == pytest.approx({0: -math.log(4), 1: -math.log(4)})
    assert log_ratios(runs([0.0, 0.1]), runs([0.1, 0.1])) == {}
    for mine in ([0.1], [0.0, 0.1, 0.1]):  # a single seed has no interval
        (compared,) = contrasts_of(runs(mine), [runs([0.1] * len(mine))])
        assert math.isnan(compared.loss.value)


def test_ratio_of_means_is_the_pooled_t_interval():
    one, other = np.array([0.1, 0.12, 0.11]), np.array([0.1, 0.13, 0.12, 0.11, 0.12])
    result = ratio_of_means(runs(list(one)), runs(list(other)), 0.9)
    a, b = np.log(one), np.log(other)
    pooled = math.sqrt((((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / 6)
    half = stats.t.ppf(0.95, 6) * pooled * math.sqrt(1 / 3 + 1 / 5)
    middle = a.mean() - b.mean()
    expected = [math.exp(bound) for bound in (middle, middle - half, middle + half)]
    assert [result.value, result.low, result.high] == pytest.approx(expected)
    assert math.isnan(ratio_of_means(runs([0.1, math.nan]), runs(list(other)), 0.9).value)


def test_standings():
    mine = runs([0.10, 0.11, 0.10, 0.11, 0.10], block="mine")
    near = runs([0.11, 0.10, 0.10, 0.11, 0.10], block="near")
    better = runs([0.05, 0.055, 0.05, 0.056, 0.05], block="better")
    fails = runs([2.3] * 5, successes=0, block="fails")
    results = contrasts_of(mine, [near, better, fails])
    assert {one.other: one.standing for one in results} == {"near": "undecided", "better": "worse", "fails": "better"}
    assert math.isnan(results[2].p)  # no verdict against an untrained reference
    assert contrasts_of(fails, [mine])[0].standing == "worse"
    position = BlockPosition("dense", "digits", 2, 0.1, 5, 5, IntervalEstimate(0.1, 0.09, 0.11, 5), results)
    assert [position.count(standing) for standing in ("better", "undecided", "worse")] == [1, 1, 1]
    assert position.ranks == (2, 3)

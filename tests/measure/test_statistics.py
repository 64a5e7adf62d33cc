"""Statistics against published values, hand calculations, brute force, and invariants."""

import math
from statistics import mean

import numpy as np
import pytest
from scipy import stats

from highway_bench.errors import BadInput
from highway_bench.measure.statistics import (
    log10_interval,
    median_interval,
    ratio_over_processes,
    t_interval,
    wilson,
)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 5, 0, 0.434),
        (3, 5, 0.231, 0.882),
        (4, 5, 0.376, 0.964),
        (5, 5, 0.566, 1),
        (8, 10, 0.490, 0.943),
        (9, 10, 0.596, 0.982),
        (10, 10, 0.722, 1),
    ],
)
def test_wilson_gives_the_published_values(k, n, low, high):
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-4)


@pytest.mark.parametrize(("n", "multiplier"), [(3, 2.48), (5, 1.24), (8, 0.84), (10, 0.72), (20, 0.47)])
def test_t_interval_has_the_published_multipliers_of_s(n, multiplier):
    values = np.random.default_rng(n).normal(size=n)
    got = t_interval(values)
    assert got.value == pytest.approx(mean(values))
    assert (got.high - got.value) / np.std(values, ddof=1) == pytest.approx(multiplier, abs=5e-3)
    assert got.value - got.low == pytest.approx(got.high - got.value)


def test_losses_are_compared_as_log10():
    got = log10_interval([1e-4, 1e-2, 1.0])
    assert got.value == pytest.approx(1e-2)
    assert math.log10(got.high) == pytest.approx(-2 + 2 * 4.302653 / math.sqrt(3), rel=1e-6)


def test_few_values_have_no_interval():
    for got in (t_interval([3.0]), log10_interval([3.0]), median_interval([3.0]), median_interval([1, 2, 3, 4, 5])):
        assert (got.value, math.isnan(got.low), math.isnan(got.high)) == (3, True, True)
    assert str(t_interval([3.0])) == "3 (n = 1)"


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (17, 5), (99, 40)])
def test_a_median_interval_has_the_sign_tests_ranks(n, rank):
    got = median_interval(range(1, n + 1))  # P(fewer than `rank` of n coins show heads) ≤ 0.025, by binomial tables
    assert (got.low, got.value, got.high) == (rank, (n + 1) / 2, n + 1 - rank)


def test_a_ratio_over_processes_has_one_number_for_each():
    """Process medians of 2, 2 and 4 times: the geometric mean, and Student's t over the three."""
    a = [2.0, 2.0, 9.0, 2.0, 2.0, 0.1, 4.0, 4.0, 4.0]
    ratio = ratio_over_processes(a, [1.0] * 9, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    logs = np.log([2.0, 2.0, 4.0])
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3)
    assert ratio.n == 3
    assert math.log(ratio.value) == pytest.approx(logs.mean())
    assert math.log(ratio.low) == pytest.approx(logs.mean() - half)
    assert math.log(ratio.high) == pytest.approx(logs.mean() + half)


def test_waiting_widens_a_ratios_interval_by_an_independent_error():
    """Steps that waited for half of the wall time: 5 %, added as the sides of a right angle."""
    a, process = [1.9, 2.0, 2.1], [0, 1, 2]
    idle, loaded = (ratio_over_processes(a, [1.0] * 3, process, wall=[n * one for one in a]) for n in (1, 2))
    assert loaded.value == idle.value
    assert idle == ratio_over_processes(a, [1.0] * 3, process)
    narrow, wide = (math.log(one.high / one.value) for one in (idle, loaded))
    assert wide == pytest.approx(math.hypot(narrow, 0.05))
    assert math.log(loaded.value / loaded.low) == pytest.approx(wide)


def test_one_process_has_no_interval():
    ratio = ratio_over_processes([2.0, 2.2], [1.0, 1.1], [0, 0])
    assert (ratio.value, ratio.n) == (pytest.approx(2.0), 1)
    assert math.isnan(ratio.low)


@pytest.mark.parametrize(
    "call",
    [
        lambda: wilson(6, 5),
        lambda: wilson(0, 0),
        lambda: t_interval([1.0, math.nan]),
        lambda: median_interval([math.inf, 1.0]),
        lambda: log10_interval([0.0, 1.0]),
        lambda: ratio_over_processes([], [], []),
        lambda: ratio_over_processes([2.0, 2.2], [1.0, 1.1], [0]),
    ],
)
def test_bad_input(call):
    with pytest.raises(BadInput):
        call()

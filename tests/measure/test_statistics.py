"""Statistics against published values, hand calculations, brute force, and invariants."""

from __future__ import annotations

import math
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from highway_bench.errors import BadInput
from highway_bench.measure.statistics import (
    log10_interval,
    median_interval,
    ratio_over_processes,
    t_interval,
    wilson,
)

COUNTS = st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


# ------------------------------------------------------------------------------------------------------ intervals


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
def test_wilson_gives_the_published_values(k: int, n: int, low: float, high: float) -> None:
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-4)


@given(COUNTS)
def test_wilson_solves_its_own_equation(counts: tuple[int, int]) -> None:
    k, n = counts
    low, high = wilson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    for end in (end for end in (low, high) if 1e-9 < end < 1 - 1e-9):  # |p̂ − p| = z √(p(1 − p)/n) at either end
        assert abs(k / n - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / n), rel=1e-5)
    assert wilson(n - k, n) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(("n", "multiplier"), [(3, 2.48), (5, 1.24), (8, 0.84), (10, 0.72), (20, 0.47)])
def test_t_interval_has_the_published_multipliers_of_s(n: int, multiplier: float) -> None:
    values = np.random.default_rng(n).normal(size=n)
    got = t_interval(values)
    assert got.value == pytest.approx(mean(values))
    assert (got.high - got.value) / np.std(values, ddof=1) == pytest.approx(multiplier, abs=5e-3)
    assert got.value - got.low == pytest.approx(got.high - got.value)


def test_losses_are_compared_as_log10() -> None:
    got = log10_interval([1e-4, 1e-2, 1.0])
    assert got.value == pytest.approx(1e-2)
    assert math.log10(got.high) == pytest.approx(-2 + 2 * 4.302653 / math.sqrt(3), rel=1e-6)


def test_one_value_has_no_interval() -> None:
    for got in (t_interval([3.0]), log10_interval([3.0]), median_interval([3.0])):
        assert math.isnan(got.low)
        assert math.isnan(got.high)
        assert str(got) == "3 (n = 1)"


def test_median_interval_of_many_values_has_the_order_statistics() -> None:
    got = median_interval(np.arange(1, 100, dtype=float))  # binomial theory: ranks 40 and 60 of 99
    assert (got.low, got.value, got.high) == (40, 50, 60)


@given(st.lists(st.integers(-1000, 1000).map(float), min_size=8, max_size=12), st.floats(0.5, 0.99))
def test_a_median_interval_lies_within_the_values(values: list[float], confidence: float) -> None:
    got = median_interval(values, confidence)
    assert min(values) <= got.low <= got.high <= max(values)


@pytest.mark.parametrize(("n", "rank"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (17, 5)])
def test_a_median_interval_has_the_sign_tests_ranks(n: int, rank: int) -> None:
    got = median_interval(range(1, n + 1))  # P(fewer than `rank` of n coins show heads) ≤ 0.025, by binomial tables
    assert (got.low, got.value, got.high) == (rank, (n + 1) / 2, n + 1 - rank)


def test_the_median_of_five_has_no_interval() -> None:
    got = median_interval([1, 2, 3, 4, 5])
    assert got.value == 3
    assert math.isnan(got.low)
    assert math.isnan(got.high)


def test_a_ratio_over_processes_has_one_number_for_each() -> None:
    """Process medians of 2, 2 and 4 times: the geometric mean, and Student's t over the three."""
    a = [2.0, 2.0, 9.0, 2.0, 2.0, 0.1, 4.0, 4.0, 4.0]
    ratio = ratio_over_processes(a, [1.0] * 9, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    logs = np.log([2.0, 2.0, 4.0])
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3)
    assert ratio.n == 3
    assert math.log(ratio.value) == pytest.approx(logs.mean())
    assert math.log(ratio.low) == pytest.approx(logs.mean() - half)
    assert math.log(ratio.high) == pytest.approx(logs.mean() + half)


def test_waiting_widens_a_ratios_interval_by_an_independent_error() -> None:
    """Steps that waited for half of the wall time: 5 %, added as the sides of a right angle."""
    a, process = [1.9, 2.0, 2.1], [0, 1, 2]
    idle, loaded = (ratio_over_processes(a, [1.0] * 3, process, wall=[n * one for one in a]) for n in (1, 2))
    assert loaded.value == idle.value
    assert idle == ratio_over_processes(a, [1.0] * 3, process)
    narrow, wide = (math.log(one.high / one.value) for one in (idle, loaded))
    assert wide == pytest.approx(math.hypot(narrow, 0.05))
    assert math.log(loaded.value / loaded.low) == pytest.approx(wide)


def test_one_process_has_no_interval() -> None:
    ratio = ratio_over_processes([2.0, 2.2], [1.0, 1.1], [0, 0])
    assert (ratio.value, ratio.n) == (pytest.approx(2.0), 1)
    assert math.isnan(ratio.low)
    with pytest.raises(BadInput, match="equal counts"):
        ratio_over_processes([2.0, 2.2], [1.0, 1.1], [0])


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    "call",
    [
        lambda: wilson(6, 5),
        lambda: wilson(0, 0),
        lambda: t_interval([1.0, math.nan]),
        lambda: median_interval([math.inf, 1.0]),
        lambda: log10_interval([0.0, 1.0]),
        lambda: ratio_over_processes([], [], []),
    ],
)
def test_bad_input_is_one_clear_line(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput) as caught:
        call()
    assert "\n" not in str(caught.value)

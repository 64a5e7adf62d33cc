"""Success: a run by its losses, a depth by its runs, a ladder by its depths, each by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from highway_bench.errors import BadInput
from highway_bench.results.schema import Status
from highway_bench.success.judging import THRESHOLD, first_below, judge, success_loss
from highway_bench.success.ladder import LMax, area_under_success, l50, l_max, largest_rise, verdict

COUNTS = st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
LADDERS = st.dictionaries(st.integers(1, 500), COUNTS, min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("losses", "status", "final"),
    [
        ([2.0] * 38 + [0.1, 0.3], Status.OK, 0.2),  # of 40 steps the last two
        ([0.1] * 38 + [0.1, 0.4], Status.STALLED, 0.25),
        ([0.1] * 3 + [math.nan], Status.DIVERGED, None),
    ],
)
def test_a_run_succeeds_by_the_mean_of_its_last_losses(losses, status, final):
    run = judge(losses, target=0.2 + 1e-12, steps=40)
    assert (run.status, run.final) == (status, None if final is None else pytest.approx(final))


@pytest.mark.parametrize(
    ("reference", "threshold", "target"),
    [(None, THRESHOLD, 0.3), (None, 0.5, 1.5), (2.0, THRESHOLD, 2.0), (2.0, 0.5, 1.5)],
)
def test_the_target_is_a_share_of_chance_or_a_reference(reference, threshold, target):
    assert success_loss(3.0, reference, threshold) == pytest.approx(target)


@pytest.mark.parametrize(
    ("losses", "window", "step"),
    [
        ([3, 2, 1], 1, 3),
        ([3, 1, 1], 2, 3),
        ([1, 3, 3], 1, 1),
        ([1.5, 0.5, 9], 2, 2),
        ([3, 3], 1, None),
        ([1], 2, None),
        ([], 1, None),
    ],
)
def test_first_below(losses, window, step):
    assert first_below(losses, 1.0, window) == step


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((9, 10, 0), "trains"),
        ((8, 10, 0), "fails"),
        ((5, 5, 0), "trains"),
        ((4, 4, 0), "not enough seeds"),
        ((9, 9, 1), "trains"),
        ((8, 9, 1), "undecided"),
        ((7, 9, 1), "fails"),
        ((0, 0, 10), "not measured"),
        ((9, 10, 0, 1), "diverges"),  # a run that diverged is no outcome to build on
        ((5, 10, 0, 3), "diverges"),
        ((5, 10, 0, 2), "fails"),
    ],
)
def test_nine_of_ten_seeds_decide_however_unfinished_runs_would_have_ended(counts, said):
    assert verdict(*counts) == said


@pytest.mark.parametrize(
    ("success", "value", "censored", "provisional"),
    [
        ({10: (10, 10), 20: (9, 10), 50: (8, 10), 100: (0, 10)}, 20, None, False),
        ({10: (10, 10), 20: (8, 10), 50: (10, 10)}, 10, None, False),  # a deeper success does not mend a failing rung
        ({10: (10, 10), 20: (10, 10)}, 20, "right", False),
        ({10: (8, 10), 20: (10, 10)}, None, "left", False),
        ({20: (0, 5), 10: (5, 5)}, 10, None, True),
        ({10: (4, 5)}, None, "left", True),
    ],
)
def test_l_max_reads_the_rule(success, value, censored, provisional):
    assert l_max(success) == LMax(value, min(success), censored, provisional)


def test_l50_by_hand():
    got = l50({10: (10, 10), 100: (0, 10)})
    assert got.value == pytest.approx(math.sqrt(1000))  # half-way on a log axis
    assert (got.low, got.high, got.censored) == (10, 100, None)  # no wider or narrower than what the ladder looked at
    got = l50({10: (10, 10), 20: (8, 10), 40: (2, 10), 80: (0, 10)})
    assert got.value == pytest.approx(20 * math.sqrt(2))
    assert got.low <= 20
    assert got.high >= 40
    # 0.75 at 10, then 20 and 40 out of order pool to 0.25: the crossing is half-way from 10 to 20
    assert l50({10: (6, 8), 20: (1, 8), 40: (3, 8)}).value == pytest.approx(10 * math.sqrt(2))
    # and the middle of a stretch at one half
    assert l50({10: (10, 10), 20: (5, 10), 80: (5, 10), 100: (0, 10)}).value == pytest.approx(40)


def test_l50_is_censored_where_the_ladder_ends():
    right, left = l50({10: (5, 5), 100: (5, 5)}), l50({10: (0, 5), 100: (0, 5)})
    assert (right.value, right.low, right.high, right.censored, str(right)) == (100, 100, math.inf, "right", "> 100")
    assert (left.value, left.low, left.high, left.censored, str(left)) == (10, 0, 10, "left", "< 10")
    assert l50({10: (10, 10), 100: (6, 10)}).censored == "right"
    unsure = l50({10: (10, 10), 100: (4, 10)})
    assert (unsure.censored, unsure.high) == (None, math.inf)
    assert str(unsure) == "68.1 [10, beyond the ladder]"


@settings(max_examples=30)
@given(LADDERS)
def test_l50_lies_in_its_interval_and_on_the_ladder(success):
    got = l50(success)
    assert min(success) <= got.value <= max(success)
    assert got.low <= got.value <= got.high
    assert l50(dict(reversed(success.items()))) == got


@settings(max_examples=30)
@given(LADDERS, st.data())
def test_one_more_success_never_lowers_l50_l_max_or_the_area(success, data):
    depth = data.draw(st.sampled_from(sorted(success)))
    k, n = success[depth]
    assume(k < n)
    better = success | {depth: (k + 1, n)}
    assert l50(better).value >= l50(success).value * (1 - 1e-9)
    assert (l_max(better).value or 0) >= (l_max(success).value or 0)
    assert area_under_success(better) >= area_under_success(success)


def test_the_bootstrap_interval_covers_a_known_frontier():
    rng, truth, depths = np.random.default_rng(0), 40.0, (5, 10, 20, 40, 80, 160, 320)
    rates = [1 / (1 + (depth / truth) ** 2) for depth in depths]
    covered = 0
    for _ in range(100):
        got = l50({depth: (int(rng.binomial(10, rate)), 10) for depth, rate in zip(depths, rates, strict=True)})
        covered += got.low <= truth <= got.high
    assert covered >= 88  # nominal 95 of 100; fewer than 88 would happen once in 300 times


def test_area_under_success_by_hand():
    assert area_under_success({10: (10, 10), 100: (0, 10)}) == pytest.approx(0.5)
    assert area_under_success({10: (10, 10), 100: (10, 10), 1000: (0, 10)}) == pytest.approx(0.75)
    assert area_under_success({10: (4, 5)}) == 0.8


def test_the_largest_rise_is_named():
    rise = largest_rise({10: (10, 10), 20: (3, 10), 50: (5, 10), 200: (8, 10), 500: (0, 10)})
    assert (rise.shallow, rise.deep) == (20, 200)
    assert 0.01 < rise.p < 0.1
    assert largest_rise({20: (0, 10), 200: (10, 10)}).p < 0.001
    assert largest_rise({10: (10, 10), 20: (8, 10), 50: (8, 10), 100: (0, 10)}) is None
    assert largest_rise({10: (4, 10)}) is None


def test_equal_rates_rarely_look_like_a_rise():
    """At a level of 5 %, at most about one ladder of equal rates in twenty."""
    rng = np.random.default_rng(1)
    ladders = [
        dict(zip((10, 20, 50, 100), [(int(k), 10) for k in row], strict=True))
        for row in rng.binomial(10, 0.5, (100, 4))
    ]
    found = [rise for rise in map(largest_rise, ladders) if rise is not None and rise.p < 0.05]
    assert len(found) <= 12


@pytest.mark.parametrize(
    "call",
    [lambda: l50({}), lambda: l_max({0: (1, 1)}), lambda: area_under_success({10: (3, 2)}), lambda: largest_rise({}),
     lambda: largest_rise({10: (11, 10)})],
)  # fmt: skip
def test_bad_input(call):
    with pytest.raises(BadInput):
        call()

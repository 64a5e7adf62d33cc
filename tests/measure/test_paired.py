"""Contrasts with a reference on the same seeds, their words, who leads, and how many pairs would decide."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from highway_bench.errors import BadInput
from highway_bench.measure.paired import ALPHA, Contrast, compare, contrasts, holm, leaders, p_value
from highway_bench.measure.statistics import IntervalEstimate


def by_seed(mean, seeds=10, *, spread=0.0, salt=0):
    """Values with a common part of each seed, as paired runs have it, and a part of their own."""
    common, own = np.random.default_rng(1), np.random.default_rng(100 + salt)
    values = mean + 0.1 * common.standard_normal(seeds) + spread * own.standard_normal(seeds)
    return dict(enumerate(values.tolist()))


def test_a_contrast_is_a_paired_t_test():
    values = {"pre-norm": by_seed(2.0), "one": by_seed(1.9, spread=0.05)}
    contrast = contrasts(values, "pre-norm")["one"]
    expected = stats.ttest_rel(list(values["one"].values()), list(values["pre-norm"].values()))
    assert contrast.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (contrast.difference.low, contrast.difference.high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize(
    ("differences", "within", "word"),
    [
        ([-0.5, -0.52, -0.49, -0.51, -0.5], 0.0, "better"),
        ([0.5, 0.52, 0.49, 0.51, 0.5], 0.0, "worse"),
        ([-0.5, 0.6, -0.4, 0.5, 0.1], 0.0, "undecided"),
        ([-0.005, 0.006, -0.004, 0.005, 0.001], 0.02, "equal"),
        ([-0.005, -0.0051, -0.0049, -0.005, -0.005], 0.02, "equal"),  # separated from 0, and yet within
        ([-0.5, -0.52, -0.49, -0.51], 0.0, "undecided"),  # four pairs
    ],
)
def test_the_word_of_a_comparison(differences, within, word):
    reference = dict.fromkeys(range(len(differences)), 1.0)
    found = compare({"r": reference, "a": {n: 1 + one for n, one in enumerate(differences)}}, "r", equal_within=within)
    assert found["a"].word == word


def test_an_interval_excludes_0_exactly_where_holms_p_is_below_alpha():
    values = {"r": dict.fromkeys(range(8), 0.0)}
    for number, shift in enumerate((0.02, 0.045, 0.08, 0.3, 1.0)):
        values[f"{number}"] = {seed: shift + 0.1 * math.sin(7 * seed + number) for seed in range(8)}
    found = compare(values, "r")
    alone = [stats.ttest_1samp(list(values[name].values()), 0).pvalue for name in found]
    assert [one.p for one in found.values()] == pytest.approx(holm(list(map(float, alone))))
    for one in found.values():
        assert (one.difference.low > 0 or one.difference.high < 0) == (one.p < ALPHA)
    assert {one.word for one in found.values()} == {"worse", "undecided"}


def test_leaders_are_those_not_worse_than_the_best():
    values = {"a": by_seed(2.0), "b": by_seed(2.001, spread=0.05), "c": by_seed(2.5, spread=0.05, salt=1)}
    assert leaders(values)[:1] == [min("ab", key=lambda name: sum(values[name].values()))]
    assert set(leaders(values)) == {"a", "b"}


def test_only_seeds_of_both_count_and_fewer_than_two_decide_nothing():
    found = contrasts({"one": {0: 1.0, 1: 2.0}, "other": {1: 1.0}, "third": {5: 0.0}}, "one")
    assert (found["other"].difference.value, found["other"].p) == (-1.0, 1.0)
    assert math.isnan(found["other"].difference.low)
    assert math.isnan(found["third"].difference.value)
    assert (found["other"].difference.n, found["third"].difference.n) == (1, 0)
    assert math.isnan(found["other"].pairs_needed(0.05))


def test_differences_that_do_not_vary():
    copies = contrasts({"pre-norm": by_seed(2.0), "copy": by_seed(2.0)}, "pre-norm")["copy"]
    assert (copies.difference.value, copies.p) == (0.0, 1.0)
    assert [p_value(np.array(one)) for one in ([0.5], [0.5, 0.5], [0.0, 0.0])] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(("effect", "pairs"), [(0.5, 34), (1.0, 10), (2.0, 4)])
def test_pairs_needed_are_those_of_the_noncentral_t(effect, pairs):
    """34 and 10 are the textbook's pairs for 80 % at d = 0.5 and 1; at d = 2 the approximation is one short of 5."""
    contrast = Contrast(IntervalEstimate(effect, math.nan, math.nan, 5), 1.0, 1.0)
    assert contrast.pairs_needed(0.05) == pairs
    n = pairs + 1
    power = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, effect * math.sqrt(n))
    assert power > 0.8


def test_holm_by_hand():
    with pytest.raises(BadInput):
        holm([1.5])
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_only_raises_keeps_order_and_stays_a_probability(p_values):
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted)
    assert holm(p_values[::-1]) == pytest.approx(adjusted[::-1])

"""Contrasts with a reference on the same seeds, who leads, and how many pairs would decide."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from highway_bench.errors import BadInput
from highway_bench.measure.paired import Contrast, contrasts, holm, leaders, p_value
from highway_bench.measure.statistics import IntervalEstimate


def by_seed(mean: float, seeds: int = 10, *, spread: float = 0.0, salt: int = 0) -> dict[int, float]:
    """Values with a common part of each seed, as paired runs have it, and a part of their own."""
    common, own = np.random.default_rng(1), np.random.default_rng(100 + salt)
    values = mean + 0.1 * common.standard_normal(seeds) + spread * own.standard_normal(seeds)
    return dict(enumerate(values.tolist()))


def test_a_contrast_is_a_paired_t_test() -> None:
    values = {"pre-norm": by_seed(2.0), "one": by_seed(1.9, spread=0.05)}
    contrast = contrasts(values, "pre-norm")["one"]
    expected = stats.ttest_rel(list(values["one"].values()), list(values["pre-norm"].values()))
    assert contrast.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (contrast.difference.low, contrast.difference.high) == pytest.approx((interval.low, interval.high))
    assert contrast.is_significant == (contrast.p < 0.05)


def test_contrasts_are_corrected_together() -> None:
    values = {"pre-norm": by_seed(2.0)} | {f"{n}": by_seed(1.99, spread=0.03, salt=n) for n in range(5)}
    alone = {name: contrasts({name: values[name], "pre-norm": values["pre-norm"]}, "pre-norm") for name in "01234"}
    together = contrasts(values, "pre-norm")
    assert all(together[name].p >= alone[name][name].p for name in together)
    assert min(one.p for one in together.values()) == pytest.approx(5 * min(alone[name][name].p for name in together))


def test_only_seeds_of_both_count() -> None:
    values = {"pre-norm": by_seed(2.0, 5), "one": by_seed(1.0, 10, spread=0.01)}
    assert contrasts(values, "pre-norm")["one"].difference.n == 5


def test_equal_runs_do_not_differ() -> None:
    contrast = contrasts({"pre-norm": by_seed(2.0), "copy": by_seed(2.0)}, "pre-norm")["copy"]
    assert (contrast.difference.value, contrast.p) == (0.0, 1.0)


def test_leaders_are_those_not_worse_than_the_best() -> None:
    values = {"a": by_seed(2.0), "b": by_seed(2.001, spread=0.05), "c": by_seed(2.5, spread=0.05, salt=1)}
    assert leaders(values)[:1] == [min("ab", key=lambda name: sum(values[name].values()))]
    assert set(leaders(values)) == {"a", "b"}


def test_without_two_common_seeds_nothing_is_decided() -> None:
    found = contrasts({"one": {0: 1.0, 1: 2.0}, "other": {1: 1.0}, "third": {5: 0.0}}, "one")
    assert (found["other"].difference.value, found["other"].p) == (-1.0, 1.0)
    assert math.isnan(found["other"].difference.low)
    assert math.isnan(found["third"].difference.value)
    assert math.isnan(found["other"].pairs_needed(0.05))


def test_differences_that_do_not_vary() -> None:
    assert [p_value(np.array(one)) for one in ([0.5], [0.5, 0.5], [0.0, 0.0])] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(("effect", "pairs"), [(0.5, 34), (1.0, 10), (2.0, 4)])
def test_pairs_needed_are_those_of_the_noncentral_t(effect: float, pairs: int) -> None:
    """34 and 10 are the textbook's pairs for 80 % at d = 0.5 and 1; at d = 2 the approximation is one short of 5."""
    contrast = Contrast(IntervalEstimate(effect, math.nan, math.nan, 5), 1.0, 1.0)
    assert contrast.pairs_needed(0.05) == pairs
    n = pairs + 1
    power = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, effect * math.sqrt(n))
    assert power > 0.8


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_only_raises_keeps_order_and_stays_a_probability(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted)
    assert holm(p_values[::-1]) == pytest.approx(adjusted[::-1])


def test_p_values_are_probabilities() -> None:
    with pytest.raises(BadInput, match="lie between 0 and 1"):
        holm([1.5])

"""Contrasts with a reference on the same seeds, and who leads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from highway_bench.decide.contrasts import contrasts, leaders


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

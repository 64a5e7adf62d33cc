"""Power: the published examples, closed forms, and designs that show nothing."""

import math

import numpy as np
import pytest
from scipy import stats

from highway_bench.studies.reproduce.power import PowerDesign
from highway_bench.studies.reproduce.quantities import Region, Statistic, rate_difference

ABOVE = Region(least=1.0)


def paired(n, scatter, comparisons=4):
    return PowerDesign(Statistic.PAIRED, n, 1 - 0.05 / comparisons, scatter, ABOVE, ratio=True)


@pytest.mark.parametrize(
    ("n", "scatter", "least", "most"), [(4, 0.26, 12, 22), (10, 0.26, 2.4, 3.1), (10, 0.1, 1.4, 1.6)]
)
def test_the_smallest_ratio_of_known_designs(n, scatter, least, most):
    """With four contrasts: about 17 at four seeds and 2.8 at ten of convolutional networks; 1.5 at ten dense ones."""
    assert least < paired(n, scatter).smallest() < most


def test_the_power_of_a_t_interval_is_that_of_the_noncentral_t():
    design = PowerDesign(Statistic.MEAN, 5, 0.95, 2.0, Region(least=0), ratio=False)
    noncentral = 3 * math.sqrt(5) / 2
    expected = 1 - stats.nct.cdf(stats.t.ppf(0.975, 4), 4, noncentral)
    assert design.power(3.0) == pytest.approx(expected, abs=0.02)
    assert design.power(design.smallest()) == pytest.approx(0.8, abs=0.01)
    assert design.power(3.0) == design.power(3.0)


def test_below_a_bound_is_the_mirror_image_and_two_bounds_have_no_smallest_effect():
    regions = Region(most=2), Region(least=2), Region(-3, 3)
    below, above, both = (PowerDesign(Statistic.MEAN, 8, 0.95, 1.0, region, ratio=False) for region in regions)
    assert 2 - below.smallest() == pytest.approx(above.smallest() - 2, rel=0.05)
    assert math.isnan(both.smallest())
    assert both.power(0) > both.power(2)


@pytest.mark.parametrize(("n", "enough"), [(4, 4), (10, 9), (11, 9), (16, 12)])
def test_a_rate_above_half_needs_wilsons_interval_above_half(n, enough):
    design = PowerDesign(Statistic.RATE, n, 0.95, math.nan, Region(least=50), ratio=False)
    assert design.power(90) == pytest.approx(stats.binom.sf(enough - 1, n, 0.9))
    assert design.power(100) == 1.0
    assert design.power(design.smallest()) == pytest.approx(0.8, abs=0.01)


def test_the_power_of_a_difference_of_rates():
    design = PowerDesign(Statistic.RATES, 10, 1 - 0.05 / 4, math.nan, Region(least=0), ratio=False)
    draws = np.random.default_rng(0).binomial(10, [[0.9], [0.1]], (2, 2_000))
    shown = [rate_difference("", (one, 10), (other, 10), design.confidence).low > 0 for one, other in draws.T]
    assert design.power(80) == pytest.approx(np.mean(shown), abs=0.03)
    assert design.power(design.smallest()) == pytest.approx(0.8, abs=0.01)
    assert design.power(0) < 0.05
    mirror = PowerDesign(Statistic.RATES, 10, design.confidence, math.nan, Region(most=0), ratio=False)
    assert mirror.power(-80) == pytest.approx(design.power(80))
    assert mirror.smallest() == pytest.approx(-design.smallest())


def test_newcombes_published_intervals():
    """Newcombe 1998, table II, method 10."""
    for one, other, low, high in (((56, 70), (48, 80), 5.24, 33.39), ((9, 10), (3, 10), 17.05, 80.90)):
        difference = rate_difference("", one, other, 0.95)
        assert (difference.low, difference.high) == pytest.approx((low, high), abs=0.01)


def test_three_runs_cannot_show_a_rate_above_half():
    """Of three, Wilson's interval begins at 44 %; seven runs are the fewest with the power for nearly all."""
    design = PowerDesign(Statistic.RATE, 3, 0.95, math.nan, Region(least=50), ratio=False)
    assert design.power(100) == 0.0
    assert math.isnan(design.smallest())
    needed = design.needed(90)
    assert design.power(90, needed) >= 0.8 > max(design.power(90, n) for n in range(needed))
    few = PowerDesign(Statistic.RATE, 20, 0.95, math.nan, Region(least=50), ratio=False, least=30)
    assert few.power(100) == 0.0


def test_all_of_n_runs():
    design = PowerDesign(Statistic.SHARE, 3, 0.95, math.nan, Region(least=100, closed=True), ratio=False)
    assert design.power(90) == pytest.approx(0.9**3)
    assert design.smallest() == pytest.approx(100 * 0.8 ** (1 / 3), abs=0.1)
    half = PowerDesign(Statistic.SHARE, 5, 0.95, math.nan, Region(least=50, closed=True), ratio=False)
    assert half.power(90) == pytest.approx(stats.binom.sf(2, 5, 0.9))


def test_too_few_runs_for_an_order_show_nothing():
    few, enough = (PowerDesign(Statistic.ORDER, n, 0.95, 0.05, ABOVE, ratio=True) for n in (3, 4))
    assert few.power(10.0) == 0.0
    assert enough.power(2.0) > 0.9
    assert few.needed(2.0) == 4
    assert paired(1, 0.1).power(10.0) == 0.0


def test_a_steadier_run_shows_what_more_runs_do_not():
    """The range of all pairs of runs grows with their number, so only a smaller scatter helps."""
    design = PowerDesign(Statistic.ORDER, 6, 0.95, 0.15, ABOVE, ratio=True)
    assert design.summary(2.0).needed is None
    steady = design.steady(2.0)
    assert PowerDesign(Statistic.ORDER, 6, 0.95, steady, ABOVE, ratio=True).power(2.0) == pytest.approx(0.8, abs=0.01)
    assert math.isnan(design.steady(0.5))


def test_what_shows_a_smaller_effect():
    """More trials; and an interval of the difference rather than intervals that are apart."""
    few, many = (PowerDesign(Statistic.BEST, n, 0.95, 0.5, ABOVE, ratio=True).smallest() for n in (40, 60))
    assert many < few
    kinds = (Statistic.APART, Statistic.MEAN)
    apart, one = (PowerDesign(kind, 5, 0.95, 0.2, Region(least=0), ratio=False) for kind in kinds)
    assert apart.smallest() > 1.5 * one.smallest()

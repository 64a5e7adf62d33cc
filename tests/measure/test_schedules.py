"""Steps of whole schedules that lead to a loss: a law, straight lines where it fails, and intervals that cover."""

import math

import numpy as np
import pytest

from highway_bench.measure.schedules import LossBySteps, mean_error

STEPS = (375, 750, 1_500, 3_000, 6_000)


def law(steps):
    return 1.9 + 18 * steps**-0.45


def rungs(losses, scatter=0.0, seeds=3, draws=None):
    noise = (draws or np.random.default_rng(0)).standard_normal
    return {steps: [losses(steps) + scatter * noise() for _ in range(seeds)] for steps in STEPS}


@pytest.mark.parametrize("steps", [500, 1_500, 4_000])
def test_a_law_is_inverted(steps):
    curve = LossBySteps.of(rungs(law, 1e-4), within=0.01)
    assert curve.law
    assert curve.steps_to(law(steps)).value == pytest.approx(steps, rel=0.01)


def test_where_the_law_mispredicts_a_rung_losses_are_interpolated():
    """Two plateaus with a cliff between them."""
    curve = LossBySteps.of(rungs(lambda steps: 3.0 - 0.001 * math.log(steps) - (steps > 1_000), 1e-4), within=0.01)
    assert not curve.law
    found = curve.steps_to(2.5)
    assert 750 < found.low <= found.value <= found.high < 1_500


def test_beyond_the_rungs_intervals_are_open():
    curve = LossBySteps.of(rungs(law, 0.001), within=0.01)
    beyond, before = curve.steps_to(law(20_000)), curve.steps_to(law(100))
    assert (beyond.value, beyond.low, beyond.high) == (6_000, 6_000, math.inf)
    assert (before.value, before.low, before.high) == (375, 0, 375)


@pytest.mark.parametrize(
    "losses",
    [
        {375: [3, 3], 750: [2, 2], 1_500: [1, 1]},  # too few rungs
        {375: [3, 3], 750: [2], 1_500: [1.5, 1.5], 3_000: [1, 1]},  # a rung of one seed
        {375: [3, 3], 750: [1, 1], 1_500: [1.5, 1.5], 3_000: [2, 2]},  # the longest is not the best
    ],
)
def test_what_gives_no_curve(losses):
    assert LossBySteps.of(losses, within=0.01) is None


@pytest.mark.slow
def test_intervals_cover():
    """About 95 % of a hundred simulated studies, with three seeds a rung and five of a connection."""
    draws, covered = np.random.default_rng(1), 0
    for _ in range(100):
        curve = LossBySteps.of(rungs(law, 0.016, draws=draws), within=0.01)
        own = [law(2_250) + 0.016 * draws.standard_normal() for _ in range(5)]
        found = curve.steps_to(*mean_error(own))
        covered += found.low <= 2_250 <= found.high
    assert covered >= 90

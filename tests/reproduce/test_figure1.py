"""Figure 1: equal trials in both arms, and the verdicts that given trials must get."""

import itertools
import math

import numpy as np
import pytest

from highway_bench.errors import BadInput
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.quantities import BEST_OF, best_ratio, expected_best
from highway_bench.studies.reproduce.request import Request
from highway_bench.studies.reproduce.searches import searched
from tests.reproduce.conftest import C, N, R, U, rows_of, verdicts

FIGURE1 = reproductions.get("figure1")
LOWER = "100 layers: highway ends at a lower loss"


def outcome(losses, scale="desk", steps=None):
    """The conclusion for trials with these final losses. The winner's runs end near the lowest of them."""
    request, values = Request(scale=scale), {}
    for (block, depth), own in losses.items():
        cell = next(cell for cell in FIGURE1.cells(request) if (cell.block, cell.depth) == (block, depth - 1))
        drawn = {"rate": 0.1, "momentum": 0.9, "decay": 0.1, "steps": 500}
        trials = {cell.but(trial=trial, recipe=drawn): {"final_loss": loss} for trial, loss in enumerate(own)}
        reached = (steps or {}).get(block, math.inf)
        fresh = {
            cell.but(seed=seed): {"final_loss": min(own) * (1 + 0.01 * seed), "steps_to_threshold": reached}
            for seed in range(5)
        }
        values |= trials | fresh
    return FIGURE1.outcome(rows_of(values), request)


def verdict(result, what):
    """The verdict on the claim whose statement has these words."""
    (found,) = verdicts(result, what)
    return found


def spread(around):
    return [around * factor for factor in np.geomspace(1, 30, 60)]


LIKE_THE_PAPER = {
    (block, depth): spread(around)
    for block, bests in (("plain", (5e-5, 8e-5, 1e-2, 1e-1)), ("highway", (1e-4, 5e-5, 4e-5, 3e-5)))
    for depth, around in zip((10, 20, 50, 100), bests, strict=True)
}


def test_both_arms_and_every_depth_get_the_same_search():
    assert len({str(cell.recipe["search"]) for cell in FIGURE1.cells(Request())}) == 1
    with pytest.raises(BadInput, match="2 at least"):
        FIGURE1.cells(Request(depth=(10, 1)))


def test_trials_like_the_papers_reproduce_it():
    result = outcome(LIKE_THE_PAPER, steps={"plain": 300, "highway": 100})
    assert set(verdicts(result)) == {R}
    assert [picture.name for picture in result.pictures] == ["figure1-best"]


def test_a_smaller_gap_is_a_direction_and_no_two_orders():
    trials = LIKE_THE_PAPER | {("plain", 100): spread(6e-4)}
    desk = outcome(trials)
    assert (verdict(desk, "two orders"), verdict(desk, LOWER)) == (N, R)
    assert verdict(outcome(trials, "paper"), "two orders") == C


def test_highway_that_degrades_contradicts():
    result = outcome(LIKE_THE_PAPER | {("highway", 100): spread(1.0)})
    assert verdict(result, LOWER) == verdict(result, "do about as well") == C


@pytest.mark.parametrize(("shallow", "deep", "expected"), [(1e-3, 1.8, C), (1.8, 1e-4, N), (1e-2, 1e-4, R)])
def test_the_shallower_net_is_the_reference(shallow, deep, expected):
    """It must be trained; the deeper one need not be."""
    result = outcome(LIKE_THE_PAPER | {("highway", 10): spread(shallow), ("highway", 100): spread(deep)})
    assert verdict(result, "highway nets get better") == expected


@pytest.mark.parametrize(
    ("plain", "highway", "expected"),
    [
        ([2.3] * 60, [2.2] * 60, N),  # both stay at chance
        ([math.inf] * 60, spread(3e-5), R),  # an arm that always diverged ranks last
        (list(np.random.default_rng(0).lognormal(0, 1, 60)), list(np.random.default_rng(1).lognormal(0, 1, 60)), U),
    ],
)
def test_two_searches_at_100_layers(plain, highway, expected):
    assert verdict(outcome(LIKE_THE_PAPER | {("plain", 100): plain, ("highway", 100): highway}), LOWER) == expected


def test_a_trial_that_failed_did_not_diverge():
    """Its rows have no values either."""
    cell = FIGURE1.cells(Request())[0]
    losses = {cell.but(trial=trial, recipe={"rate": 0.1, "momentum": 0.9, "decay": 0.1}): {"final_loss": loss}
              for trial, loss in enumerate((0.2, math.nan, math.nan))}  # fmt: skip
    rows = rows_of(losses).assign(status=["ok", "timeout", "diverged"])
    (found,) = searched(rows).values()
    assert list(found["losses"]) == [0.2, math.inf]


def test_too_few_trials_are_named_before_the_reference():
    few = {arm: [1e-3, 2e-3] for arm in LIKE_THE_PAPER}
    reasons = {one.why for one in outcome(few).findings if "expected best" in one.claim.quantity}
    assert [reason.split()[0] for reason in reasons] == ["2"]


@pytest.mark.parametrize(
    ("plain", "highway", "expected"), [(math.inf, 90.0, R), (math.inf, math.inf, N), (90.0, 200.0, C)]
)
def test_convergence_is_judged_by_the_arm_that_reaches_the_threshold_first(plain, highway, expected):
    result = outcome(LIKE_THE_PAPER, steps={"plain": plain, "highway": highway})
    assert verdict(result, "converge faster") == expected


def test_without_the_papers_depths_their_claims_are_not_testable():
    some = outcome({key: losses for key, losses in LIKE_THE_PAPER.items() if key[1] in (10, 20)})
    assert {*verdicts(some, "100"), *verdicts(some, "converge")} == {N}


def test_the_ratio_of_best_losses_is_paired_and_depends_on_no_order():
    losses = np.geomspace(1, 100, 40)
    ratio = best_ratio("", 10 * losses, losses)  # pairs: without any trial there is this ratio
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((10, 10, 10))
    unpaired = best_ratio("", 10 * np.geomspace(1, 100, 45), losses)
    assert unpaired.low < unpaired.value < unpaired.high
    rng = np.random.default_rng(3)
    over, under = rng.lognormal(0, 1, (2, 60))
    ratio, order = best_ratio("", over, under), rng.permutation(60)
    again = best_ratio("", over[order], under[order])
    assert (again.low, again.value, again.high) == pytest.approx((ratio.low, ratio.value, ratio.high))


def test_the_expected_best_is_the_mean_over_all_draws():
    losses = np.array([1e-1, 1e-3, 1e-2, math.inf, 1.0])
    draws = [min(draw) for draw in itertools.combinations(losses, 3)]
    assert expected_best(losses, 3) == pytest.approx(np.log10(draws).mean())
    mostly = np.array([1e-1, *[math.inf] * 5])
    assert math.isinf(expected_best(mostly, 2))  # two thirds of the draws have diverged trials alone
    assert expected_best(mostly, 4) == pytest.approx(-1)
    assert np.isnan(expected_best(losses, 6))


@pytest.mark.parametrize("scatter", ["normal", "exponential"])
def test_its_interval_covers_the_true_ratio(scatter):
    """In 95 % of searches. A percentile bootstrap over 60 trials covers it in 84 to 92 %."""
    rng = np.random.default_rng(0)
    sizes = (1.0, 0.5)  # decades: with equal ones the errors of both arms are alike

    def searches(n, number):
        one = rng.standard_normal if scatter == "normal" else lambda shape: -rng.standard_exponential(shape)
        return [10 ** (size * one((number, n))) for size in sizes]

    over, under = (float(np.log10(losses.min(axis=1)).mean()) for losses in searches(BEST_OF, 20_000))
    ratios = [best_ratio("", one, other) for one, other in zip(*searches(60, 400), strict=True)]
    assert np.mean([ratio.low <= 10 ** (over - under) <= ratio.high for ratio in ratios]) >= 0.95


def test_an_expectation_that_one_trial_makes_infinite_has_no_interval():
    under = np.geomspace(1e-3, 1, 60)
    one, two = (best_ratio("", np.array([1e-1] * ended + [math.inf] * (60 - ended)), under) for ended in (1, 2))
    assert one.value == one.low == one.high == math.inf  # most draws have diverged trials alone
    assert math.isfinite(two.value)
    assert math.isnan(two.low)

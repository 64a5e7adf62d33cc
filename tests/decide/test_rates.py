"""Which learning rates are tried, and which one is chosen."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highway_bench.studies.decide.candidate import Try, around, beyond, next_tries
from highway_bench.success.rates import GRID, chosen_rate

SEEDS = (7, 8, 9)
FIRST = (0.3, 0.1, 0.03)


def searched(loss):
    """The losses of a whole search."""
    losses = {}
    while tries := next_tries(losses, FIRST, SEEDS):
        assert not losses.keys() & set(tries)  # no run is made twice, so that the search ends
        losses |= {(rate, seed): loss(rate, seed) for rate, seed in tries}
    return losses


def tried(losses):
    """The rates of ``losses`` in the order of the grid."""
    return sorted({rate for rate, _ in losses}, key=GRID.index)


@pytest.mark.parametrize("best", GRID)
def test_the_grid_goes_on_until_the_best_is_inside(best):
    losses = searched(lambda rate, seed: 0.1 + math.log10(rate / best) ** 2 + 1e-4 * seed)
    assert chosen_rate(losses, SEEDS) == best
    if best == 0.1:
        assert {rate for rate, _ in losses} == set(FIRST)
        assert {rate for rate, seed in losses if seed == SEEDS[-1]} == {0.1, 0.3}
    assert beyond(best, tried(losses)) is None


def test_diverged_runs_lead_to_lower_rates():
    losses = searched(lambda rate, seed: None if rate > 0.003 else 0.2 * (0.003 / rate))
    assert chosen_rate(losses, SEEDS) == 0.003
    assert min(rate for rate, _ in losses) == 0.001


def test_one_diverged_seed_of_three_counts_as_the_largest_loss_and_two_exclude_a_rate():
    losses = {(rate, seed): 0.4 for rate in FIRST for seed in SEEDS}
    losses |= {(0.1, seed): 0.01 for seed in SEEDS}
    assert chosen_rate(losses | {(0.1, 8): None}, SEEDS) == 0.1  # 0.01, 0.4 and 0.01
    assert chosen_rate(losses | {(0.1, 8): None, (0.1, 9): None}, SEEDS) == 0.03
    assert chosen_rate(dict.fromkeys(losses, None), SEEDS) == 0.03


def test_more_seeds_decide_between_the_best_two():
    losses = {(0.3, 7): 0.5, (0.1, 7): 0.2, (0.03, 7): 0.21}
    assert next_tries(losses, FIRST, SEEDS) == [Try(rate, seed) for rate in (0.1, 0.03) for seed in (8, 9)]
    losses |= {(0.1, 8): 0.4, (0.1, 9): 0.4, (0.03, 8): 0.2, (0.03, 9): 0.2}
    assert chosen_rate(losses, SEEDS) == 0.03
    assert next_tries(losses, FIRST, SEEDS) == [Try(0.01, seed) for seed in SEEDS]  # 0.03 is the lowest of those tried
    losses |= {(0.01, seed): 0.3 for seed in SEEDS}
    assert next_tries(losses, FIRST, SEEDS) == []
    assert chosen_rate(losses, SEEDS) == 0.03


def test_the_next_rung_begins_around_the_last_choice():
    assert around(0.1) == (0.3, 0.1, 0.03)
    assert around(GRID[0]) == GRID[:2]


@given(st.lists(st.none() | st.just(0.0) | st.floats(1e-6, 10.0), min_size=30, max_size=30))
def test_a_search_ends_inside_of_the_tried_rates_whatever_the_losses(values):
    outcome = dict(zip(itertools.product(GRID, SEEDS), values, strict=True))
    losses = searched(lambda *run: outcome[run])
    chosen = chosen_rate(losses, SEEDS)
    assert beyond(chosen, tried(losses)) is None

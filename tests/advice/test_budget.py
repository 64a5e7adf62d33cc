"""How minutes become steps, connections and seeds: predictions stay within the time."""

from __future__ import annotations

import pytest

from highway_bench.errors import BadInput
from highway_bench.studies.advice.budget import (
    FINALISTS,
    HALVING,
    LEAST_FINAL_SEEDS,
    LEAST_KEPT,
    MARGIN,
    MOST_FINAL_SEEDS,
    Pace,
    halving_cost,
    halving_plan,
    in_rung,
    seeds_that_fit,
    timing_plan,
)

RATIOS = [1.0, 1.4, 1.6, 1.1, 1.2, 1.3, 1.05, *[1.5] * 28]


@pytest.mark.parametrize("step", [0.002, 0.02, 0.1, 0.4, 1.5])
def test_halving_fits_its_share(step: float) -> None:
    pace = Pace(step, 0.5, 6.0)
    plan = halving_plan(10, 2, RATIOS, pace)
    fixed, a_step = halving_cost(RATIOS[: plan.connections], plan.rungs, plan.seeds, pace, plan.kept)
    seconds = (fixed + a_step * plan.steps) * MARGIN / 2 + pace.start * (plan.rungs + 1)
    assert seconds <= 60 * 10 * HALVING
    assert plan.connections >= 2


def test_slow_layers_have_fewer_connections() -> None:
    fast, slow = (halving_plan(10, 2, RATIOS, Pace(step, 0.5, 6.0)) for step in (0.01, 1.5))
    assert (fast.connections, fast.rungs, fast.seeds) == (len(RATIOS), 3, 2)
    assert slow.connections < len(RATIOS)
    assert slow.steps < fast.steps


def test_too_few_minutes_say_how_many_are_needed() -> None:
    with pytest.raises(BadInput, match="too few") as said:
        halving_plan(0.5, 2, RATIOS, Pace(3.0, 0.5, 6.0))
    needed = float(str(said.value).split()[-3])
    assert halving_plan(needed, 2, RATIOS, Pace(3.0, 0.5, 6.0)).connections == 2


def test_steps_that_are_asked_for_are_those_of_the_last_rung() -> None:
    pace = Pace(0.02, 0.5, 6.0)
    asked = halving_plan(10, 2, RATIOS, pace, 300)
    assert (asked.steps, asked.ladder) == (300, (33, 100, 300))
    assert asked.connections < halving_plan(10, 2, RATIOS, pace, 30).connections
    with pytest.raises(BadInput, match="too few"):
        halving_plan(10, 2, RATIOS, pace, 100_000)


def test_a_third_goes_on_but_at_least_six() -> None:
    assert [in_rung(rung, 35) for rung in range(3)] == [35, 12, LEAST_KEPT]
    assert [in_rung(rung, 3) for rung in range(3)] == [3, 3, 3]
    assert LEAST_KEPT > FINALISTS


def test_more_go_on_where_the_steps_that_are_asked_for_leave_time() -> None:
    kept = [halving_plan(minutes, 2, RATIOS[:14], Pace(0.01, 0.5, 6.0), 600).kept for minutes in (6, 8, 30)]
    assert kept[0] == LEAST_KEPT < kept[1] < kept[2] == 14


def test_seeds_and_finalists_that_fit() -> None:
    assert seeds_that_fit(240, 2, [10, 10, 10, 10], 6.0) == (4, 10)
    assert seeds_that_fit(10_000, 2, [10, 10, 10, 10]) == (4, MOST_FINAL_SEEDS)
    assert seeds_that_fit(60, 2, [10, 10, 10, 10], 6.0) == (3, LEAST_FINAL_SEEDS)
    assert seeds_that_fit(1, 2, [10, 10, 10]) == (2, LEAST_FINAL_SEEDS - 1)


def test_slow_steps_are_timed_in_shallower_networks() -> None:
    fast, slow = (timing_plan(10, 48, 22, Pace(step, 0.5, 6.0)) for step in (0.01, 1.0))
    assert (fast.depth, fast.samples, fast.processes) == (48, 15, 3)
    assert slow.depth < 48
    assert timing_plan(0.5, 48, 22, Pace(0.01, 0.5, 6.0)).processes == 1

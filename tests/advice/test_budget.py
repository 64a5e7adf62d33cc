"""How minutes become steps, connections and seeds: predictions stay within the time."""

import pytest

from highway_bench.errors import BadInput
from highway_bench.studies.advice import budget
from highway_bench.studies.advice.budget import LEAST_KEPT, Pace, halving_plan, in_rung, seeds_that_fit, timing_plan

RATIOS = [1.0, 1.4, 1.6, 1.1, 1.2, 1.3, 1.05, *[1.5] * 28]


def pace(step):
    return Pace(step, 0.5, 6.0)


@pytest.mark.parametrize("step", [0.002, 0.02, 0.1, 0.4, 1.5])
def test_halving_fits_its_share(step):
    plan = halving_plan(10, 2, RATIOS, pace(step))
    fixed, a_step = budget.halving_cost(RATIOS[: plan.connections], plan.rungs, plan.seeds, pace(step), plan.kept)
    seconds = (fixed + a_step * plan.steps) * budget.MARGIN / 2 + 6.0 * (plan.rungs + 1)
    assert seconds <= 60 * 10 * budget.HALVING
    assert plan.connections >= 2


def test_slow_layers_have_fewer_connections():
    fast, slow = (halving_plan(10, 2, RATIOS, pace(step)) for step in (0.01, 1.5))
    assert (fast.connections, fast.rungs, fast.seeds) == (len(RATIOS), 3, 2)
    assert slow.connections < len(RATIOS)
    assert slow.steps < fast.steps


def test_too_few_minutes_say_how_many_are_needed():
    with pytest.raises(BadInput, match="too few") as said:
        halving_plan(0.5, 2, RATIOS, pace(3.0))
    needed = float(str(said.value).split()[-3])
    assert halving_plan(needed, 2, RATIOS, pace(3.0)).connections == 2


def test_steps_that_are_asked_for_are_those_of_the_last_rung():
    asked, few = (halving_plan(10, 2, RATIOS, pace(0.02), steps) for steps in (300, 30))
    assert (asked.steps, asked.ladder) == (300, (33, 100, 300))
    assert asked.connections < few.connections
    with pytest.raises(BadInput, match="too few"):
        halving_plan(10, 2, RATIOS, pace(0.02), 100_000)


def test_a_third_goes_on_but_at_least_six():
    assert [in_rung(rung, 35) for rung in range(3)] == [35, 12, LEAST_KEPT]
    assert [in_rung(rung, 3) for rung in range(3)] == [3, 3, 3]


def test_more_go_on_where_the_steps_that_are_asked_for_leave_time():
    kept = [halving_plan(minutes, 2, RATIOS[:14], pace(0.01), 600).kept for minutes in (6, 8, 30)]
    assert kept[0] == LEAST_KEPT < kept[1] < kept[2] == 14


@pytest.mark.parametrize(
    ("seconds", "start", "expected"), [(240, 6, (4, 10)), (10_000, 0, (4, 12)), (60, 6, (3, 3)), (1, 0, (2, 2))]
)
def test_seeds_and_finalists_that_fit(seconds, start, expected):
    assert seeds_that_fit(seconds, 2, [10, 10, 10, 10], start) == expected


def test_slow_steps_are_timed_in_shallower_networks():
    fast, slow = (timing_plan(10, 48, 22, pace(step)) for step in (0.01, 1.0))
    assert (fast.depth, fast.samples, fast.processes) == (48, 15, 3)
    assert slow.depth < 48
    assert timing_plan(0.5, 48, 22, pace(0.01)).processes == 1

"""What a candidate trains next, from one rung to another, and that a protocol goes on where it stopped."""

from collections import Counter
from dataclasses import replace

import pytest

from highway_bench.plan.settings import FRESH_SEEDS, MORE_SEEDS
from highway_bench.studies.decide.candidate import TUNING_SEEDS, Candidate, TrainingEnd
from highway_bench.studies.decide.part import Protocol, dense
from highway_bench.studies.decide.rounds import Trainer
from highway_bench.tasks import tasks
from tests.decide.conftest import TINY, trained
from tests.inline_engine import InlineEngine

CANDIDATE = Candidate(TINY.candidates[0].template, (2, 4, 8), (0.3, 0.1, 0.03))
SHALLOW = replace(CANDIDATE, depths=(2,))


def end(cell, *, best=0.1, diverged=False, success=True):
    """An end whose loss is the lowest at the rate ``best``."""
    return TrainingEnd(None if diverged else 1.0 + abs(cell.recipe["rate"] - best), success and not diverged)


def test_tunes_then_trains_fresh_seeds_and_takes_the_rate_along():
    trainings = trained(CANDIDATE, end)
    assert [CANDIDATE.rate(depth, trainings) for depth in CANDIDATE.depths] == [0.1, 0.1, 0.1]
    finals = CANDIDATE.finals(8, trainings)
    assert [cell.seed for cell in finals] == list(range(FRESH_SEEDS))
    assert not {cell.seed for cell in finals} & set(TUNING_SEEDS)
    assert len(trainings) == 3 * (3 + 4 + FRESH_SEEDS)


def test_stops_below_a_depth_at_which_nothing_trained():
    trainings = trained(CANDIDATE, lambda cell: end(cell, success=cell.depth == 2))
    assert {cell.depth for cell in trainings} == {2, 4}


def test_a_depth_at_which_some_trained_gets_more_seeds():
    trainings = trained(CANDIDATE, lambda cell: end(cell, success=cell.seed != 3))
    assert len(CANDIDATE.finals(2, trainings)) == FRESH_SEEDS + MORE_SEEDS


def diverges_at(cell):
    """Two of five fresh seeds diverge at 0.1, none at 0.03; the tuning runs are best at 0.1."""
    return end(cell, diverged=cell.seed in (1, 3) and cell.recipe["rate"] == 0.1)


def only_at_the_lower(cell):
    """At 0.1 every loss is lower than at 0.03, but no run succeeds."""
    return end(cell, success=cell.recipe["rate"] != 0.1)


@pytest.mark.parametrize(("ends", "runs_at_0_1"), [(diverges_at, FRESH_SEEDS + MORE_SEEDS), (only_at_the_lower, 5)])
def test_an_unstable_rate_sends_the_fresh_seeds_to_the_next_lower_one(ends, runs_at_0_1):
    trainings = {cell: ends(cell) for cell in (SHALLOW.run(2, 0.03, seed) for seed in TUNING_SEEDS)}
    while cells := SHALLOW.pending(trainings):
        trainings |= {cell: ends(cell) for cell in cells}
    by_rate = Counter(cell.recipe["rate"] for cell in SHALLOW.finals(2, trainings))
    assert by_rate == {0.1: runs_at_0_1, 0.03: FRESH_SEEDS}
    assert {cell.recipe["rate"] for cell in SHALLOW.counted(2, trainings)} == {0.03}


def test_of_two_unstable_rates_the_one_with_more_successes_counts():
    gone = {0.03: (0, 1, 2), 0.1: (4,)}
    trainings = trained(SHALLOW, lambda cell: end(cell, diverged=cell.seed in gone.get(cell.recipe["rate"], ())))
    assert {cell.recipe["rate"] for cell in SHALLOW.finals(2, trainings)} == {0.1, 0.03}  # not 0.01
    assert {cell.recipe["rate"] for cell in SHALLOW.counted(2, trainings)} == {0.1}


def test_a_part_is_done_at_one_depth_before_the_next():
    part = Protocol("tiny", (CANDIDATE, replace(CANDIDATE, depths=(2, 4))))
    trainings = trained(part, lambda cell: end(cell, best=0.3 if cell.depth == 2 else 0.1))
    depths = [cell.depth for cell in trainings]
    assert depths == sorted(depths)
    assert part.next_depth(trainings) == (0, [])


def test_a_protocol_is_resumed(trained_part, tmp_path):
    first, *_, last = trained_part.rounds
    assert first == 3
    assert last in (FRESH_SEEDS, MORE_SEEDS)
    again = InlineEngine(tmp_path)
    assert Trainer(trained_part.store, again).train(TINY.pending) == trained_part.trainings
    assert again.cells == []


def test_the_runs_of_the_dense_part_train_together():
    groups = {tasks.get("trainability").group(cell) for one in dense().candidates for cell in one.pending({})}
    assert len(groups) == len(dense().candidates)  # the first rates of each


@pytest.mark.parametrize(("target", "longer"), [(1.0, True), (0.5, False)])
def test_what_ends_near_the_threshold_trains_three_times_as_long(target, longer):
    """Every run at the best rate ends at 1.1; in three times the steps it reaches a third of that."""
    usual = CANDIDATE.template.recipe["steps"]

    def near(cell):
        times = cell.recipe["steps"] // usual
        return TrainingEnd((1.1 + abs(cell.recipe["rate"] - 0.1)) / times, times == 3, target)

    runs = [cell for cell in trained(replace(SHALLOW, longer=3), near) if cell.recipe["steps"] == 3 * usual]
    assert [cell.seed for cell in runs] == (list(range(FRESH_SEEDS)) if longer else [])
    assert all(cell.recipe["rate"] == 0.1 and cell.recipe["verdict"] is False for cell in runs)

"""What a candidate trains next, from one rung to another, and that a protocol goes on where it stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.plan.settings import FRESH_SEEDS, MORE_SEEDS
from highway_bench.studies.decide.candidate import TUNING_SEEDS, Candidate, TrainingEnd
from highway_bench.studies.decide.part import Part, dense
from highway_bench.studies.decide.protocol import Trainer
from highway_bench.tasks import tasks
from tests.decide.conftest import TINY, TrainedPart, trained
from tests.inline_engine import InlineEngine

CANDIDATE = Candidate(TINY.candidates[0].template, (2, 4, 8), (0.3, 0.1, 0.03))


def best_at(rate: float) -> Callable[[Cell], TrainingEnd]:
    return lambda cell: TrainingEnd(1.0 + abs(cell.recipe["rate"] - rate), True)


def test_tunes_then_trains_fresh_seeds_and_takes_the_rate_along() -> None:
    trainings = trained(CANDIDATE, best_at(0.1))
    assert [CANDIDATE.rate(depth, trainings) for depth in CANDIDATE.depths] == [0.1, 0.1, 0.1]
    assert {cell.depth for cell in trainings} == {2, 4, 8}
    finals = CANDIDATE.finals(8, trainings)
    assert [cell.seed for cell in finals] == list(range(FRESH_SEEDS))
    assert not {cell.seed for cell in finals} & set(TUNING_SEEDS)
    assert len(trainings) == 3 * (3 + 4 + FRESH_SEEDS)


def test_stops_below_a_depth_at_which_nothing_trained() -> None:
    trainings = trained(CANDIDATE, lambda cell: TrainingEnd(1.0 + cell.recipe["rate"], cell.depth == 2))
    assert {cell.depth for cell in trainings} == {2, 4}


def test_a_depth_at_which_some_trained_gets_more_seeds() -> None:
    trainings = trained(CANDIDATE, lambda cell: TrainingEnd(1.0 + abs(cell.recipe["rate"] - 0.1), cell.seed != 3))
    assert len(CANDIDATE.finals(2, trainings)) == FRESH_SEEDS + MORE_SEEDS


def diverges_at(cell: Cell) -> TrainingEnd:
    """Two of five fresh seeds diverge at 0.1, none at 0.03; the tuning runs are best at 0.1."""
    unstable = cell.seed in (1, 3) and cell.recipe["rate"] == 0.1
    return TrainingEnd(None if unstable else 1.0 + abs(cell.recipe["rate"] - 0.1), not unstable)


def only_at_the_lower(cell: Cell) -> TrainingEnd:
    """At 0.1 every loss is lower than at 0.03, but no run succeeds."""
    return TrainingEnd(1.0 + abs(cell.recipe["rate"] - 0.1), cell.recipe["rate"] != 0.1)


@pytest.mark.parametrize(("ends", "runs_at_0_1"), [(diverges_at, FRESH_SEEDS + MORE_SEEDS), (only_at_the_lower, 5)])
def test_an_unstable_rate_sends_the_fresh_seeds_to_the_next_lower_one(
    ends: Callable[[Cell], TrainingEnd], runs_at_0_1: int
) -> None:
    first = [cell for seed in TUNING_SEEDS for cell in [CANDIDATE.run(2, 0.03, seed)]]
    candidate = replace(CANDIDATE, depths=(2,))
    trainings = {cell: ends(cell) for cell in first}
    while cells := candidate.pending(trainings):
        trainings |= {cell: ends(cell) for cell in cells}
    by_rate = Counter(cell.recipe["rate"] for cell in candidate.finals(2, trainings))
    assert by_rate == {0.1: runs_at_0_1, 0.03: FRESH_SEEDS}
    assert {cell.recipe["rate"] for cell in candidate.counted(2, trainings)} == {0.03}


def test_of_two_unstable_rates_the_one_with_more_successes_counts() -> None:
    candidate = replace(CANDIDATE, depths=(2,))
    diverged = {0.03: (0, 1, 2), 0.1: (4,)}
    trainings = trained(
        candidate,
        lambda cell: (
            TrainingEnd(None, False)
            if cell.seed in diverged.get(cell.recipe["rate"], ())
            else TrainingEnd(1.0 + abs(cell.recipe["rate"] - 0.1), True)
        ),
    )
    assert {cell.recipe["rate"] for cell in candidate.finals(2, trainings)} == {0.1, 0.03}  # not 0.01
    assert {cell.recipe["rate"] for cell in candidate.counted(2, trainings)} == {0.1}


def test_a_part_is_done_at_one_depth_before_the_next() -> None:
    part, trainings, depths = Part("tiny", (CANDIDATE, replace(CANDIDATE, depths=(2, 4)))), {}, []
    while cells := part.pending(trainings):
        depths.append({cell.depth for cell in cells})
        trainings |= {
            cell: TrainingEnd(1.0 + abs(cell.recipe["rate"] - (0.3 if cell.depth == 2 else 0.1)), True)
            for cell in cells
        }
    assert depths == sorted(depths, key=max)
    assert all(len(one) == 1 for one in depths)
    assert part.next_depth(trainings) == (0, [])


def test_a_protocol_is_resumed(trained_part: TrainedPart, tmp_path: Path) -> None:
    assert trained_part.rounds[0] == 3
    assert trained_part.rounds[-1] == FRESH_SEEDS or trained_part.rounds[-1] == MORE_SEEDS
    again = InlineEngine(tmp_path)
    assert Trainer(trained_part.store, again).train(TINY) == trained_part.trainings
    assert again.cells == []


def test_the_runs_of_the_dense_part_train_together() -> None:
    groups = {tasks.get("trainability").group(cell) for one in dense().candidates for cell in one.pending({})}
    assert len(groups) == len(dense().candidates)  # the first rates of each
    assert {one["block"] for one in dense().table()} >= {"plain", "highway", "highway-free", "pre-norm"}


def near(cell: Cell) -> TrainingEnd:
    """Every run at the best rate ends at 1.1 and has to reach 1.0; three times the steps do."""
    steps = cell.recipe["steps"] // CANDIDATE.template.recipe["steps"]
    return TrainingEnd((1.1 + abs(cell.recipe["rate"] - 0.1)) / steps, steps == 3, 1.0)


@pytest.mark.parametrize(("target", "longer"), [(1.0, True), (0.5, False)])
def test_what_ends_near_the_threshold_trains_three_times_as_long(target: float, longer: bool) -> None:
    candidate = replace(CANDIDATE, depths=(2,), longer=3)
    trainings = trained(candidate, lambda cell: near(cell)._replace(target=target))
    runs = [cell for cell in trainings if cell.recipe["steps"] == 3 * candidate.template.recipe["steps"]]
    assert [cell.seed for cell in runs] == (list(range(FRESH_SEEDS)) if longer else [])
    assert all(cell.recipe["rate"] == 0.1 and cell.recipe["verdict"] is False for cell in runs)

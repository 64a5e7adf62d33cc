"""Before the finals: what is measured of starts; who trains in which rung, at which rates, with which seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from highway_bench.cell import Cell
from highway_bench.studies.advice.before_training import at_start, start_cells
from highway_bench.studies.advice.budget import HalvingPlan
from highway_bench.studies.advice.halving import Halving
from highway_bench.tasks import tasks

ENDED = {"budget_mismatch": 0.0}


def loss_of(cell):
    """The later a block in the alphabet, the better; the best rate is 0.03, 3 diverges, and plain never has a loss."""
    if cell.block == "plain" or cell.recipe["rate"] > 1:
        return None
    return 2 - ord(cell.block[0]) / 100 + abs(cell.recipe["rate"] - 0.03)


class GivenCells:
    """Measurements by a formula: ``loss`` gives the final loss of a cell, ``None`` where it diverges."""

    def __init__(self, loss: Callable[[Cell], float | None]) -> None:
        self.loss = loss
        self.rounds = []
        self.known = set()

    def __contains__(self, cell: object) -> bool:
        return cell in self.known

    def measure(self, cells: Iterable[Cell], what: str) -> None:
        self.rounds.append(list(cells))
        self.known.update(self.rounds[-1])

    def losses(self, cells: Iterable[Cell]) -> list[float | None]:
        return [self.loss(cell) for cell in cells]


@pytest.fixture
def ended(ask):
    request, given = ask(block=("*",)), GivenCells(loss_of)
    plan = HalvingPlan(len(request.connections), 90, 3, 2)
    halving = Halving(request, request.connections, plan, given)
    while cells := halving.pending():
        halving.measured.measure(cells, "a rung")
    return halving


def test_each_rung_has_its_own_schedule_and_a_third_goes_on(ended):
    rounds = ended.measured
    steps = Counter(cell.recipe["steps"] for cells in rounds.rounds for cell in cells)
    assert set(steps) == {10, 30, 90}
    sizes = [len(ended.members(rung)) for rung in range(3)]
    assert sizes[0] == len(ended.connections) > 30
    assert sizes[1] in (-(-sizes[0] // 3), -(-sizes[0] // 3) + 1)
    assert sizes[2] == 7  # six, and pre-norm
    for cells in rounds.rounds:  # a rung is complete before the next one begins
        assert len({cell.recipe["steps"] for cell in cells}) == 1


def test_rates_are_searched_within(ended):
    request = ended.request
    one = next(one for one in ended.connections if one.block == "x0-mix")
    assert list(ended.rates(0, one)) == [0.3, 0.1, 0.03, 0.01]  # the best was the lowest, so its neighbour is tried
    assert list(ended.rates(1, one)) == [0.03, 0.01]
    assert ended.best(2, one).rate == 0.03
    assert ended.other(one) == (pytest.approx(loss_of(ended.cells(2, one, 0.01)[0])), 0.01)
    assert {cell.seed for cell in ended.cells(2, one, 0.03)} == set(request.tuning_seeds(2))
    assert not set(request.tuning_seeds(2)) & set(request.final_seeds(12))


def test_pre_norm_always_goes_on_and_is_first(ended):
    finalists = ended.finalists()
    assert [one.block for one in finalists] == ["pre-norm", "x0-mix", "x0-mix", "sandwich-norm"]
    plain = next(one for one in ended.connections if one.block == "plain")
    assert ended.longest_runs(plain)[0].recipe["steps"] == 10


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (ENDED, ENDED, "in range"),
        ({}, {}, None),
        ({}, ENDED, "in range"),
        (ENDED | {"signal_explodes_at": 9.0}, ENDED | {"signal_explodes_at": 11.0}, "signal explodes"),
        (
            ENDED | {"signal_vanishes_at": 9.0, "gradient_explodes_at": 1.0},
            ENDED | {"signal_vanishes_at": 9.0},
            "signal vanishes, gradient mixed",
        ),
    ],
)
def test_a_start_in_words(ask, first, second, says):
    class GivenMetrics:
        def value(self, cell: Cell, metric: str) -> float | None:
            return (first, second)[cell.seed].get(metric)

    request, given = ask(), GivenMetrics()
    assert at_start(start_cells(request, request.connections[0]), given) == says


def test_a_start_is_that_of_the_trainings(ask):
    request = ask("dense", depth=7)
    for one in request.connections:
        cells = start_cells(request, one)
        assert [cell.seed for cell in cells] == [0, 1]
        training = request.run(one, 10, 0.1, 0)
        for cell in cells:
            tasks.get("propagation").check(cell)
            names = ("block", "start", "family", "depth", "width", "dataset")
            assert {name: getattr(cell, name) for name in names} == {name: getattr(training, name) for name in names}

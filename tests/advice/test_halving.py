"""Synchronous halving: who trains in which rung, at which rates, with which seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.studies.advice.budget import HalvingPlan
from highway_bench.studies.advice.halving import Halving
from highway_bench.studies.advice.request import AdviceRequest

Ask = Callable[..., AdviceRequest]
Given = Callable[[Callable[[Cell], float | None]], Any]


def loss_of(cell: Cell) -> float | None:
    """The later a block in the alphabet, the better; the best rate is 0.03, 3 diverges, and plain never has a loss."""
    if cell.block == "plain" or cell.recipe["rate"] > 1:
        return None
    return 2 - ord(cell.block[0]) / 100 + abs(cell.recipe["rate"] - 0.03)


@pytest.fixture
def ended(ask: Ask, given: Given) -> Halving:
    request = ask(block=("*",))
    connections = request.connections
    halving = Halving(request, connections, HalvingPlan(len(connections), 90, 3, 2), given(loss_of))
    while cells := halving.pending():
        halving.measured.measure(cells, "a rung")
    return halving


def test_each_rung_has_its_own_schedule_and_a_third_goes_on(ended: Halving) -> None:
    rounds: Any = ended.measured
    steps = Counter(cell.recipe["steps"] for cells in rounds.rounds for cell in cells)
    assert set(steps) == {10, 30, 90}
    sizes = [len(ended.members(rung)) for rung in range(3)]
    assert sizes[0] == len(ended.connections) > 30
    assert sizes[1] in (-(-sizes[0] // 3), -(-sizes[0] // 3) + 1)
    assert sizes[2] == 7  # six, and pre-norm
    for cells in rounds.rounds:  # a rung is complete before the next one begins
        assert len({cell.recipe["steps"] for cell in cells}) == 1


def test_rates_are_searched_within(ended: Halving) -> None:
    request = ended.request
    one = next(one for one in ended.connections if one.block == "x0-mix")
    assert request.first_rates == (0.3, 0.1, 0.03)
    assert list(ended.rates(0, one)) == [0.3, 0.1, 0.03, 0.01]  # the best was the lowest, so its neighbour is tried
    assert list(ended.rates(1, one)) == [0.03, 0.01]
    assert ended.best(2, one)[0] == 0.03
    assert ended.other(one) == (0.01, pytest.approx(loss_of(ended.cells(2, one, 0.01)[0])))
    assert {cell.seed for cell in ended.cells(2, one, 0.03)} == set(request.tuning_seeds(2))
    assert not set(request.tuning_seeds(2)) & set(request.final_seeds(12))


def test_pre_norm_always_goes_on_and_is_first(ended: Halving) -> None:
    finalists = ended.finalists()
    assert finalists[0].block == "pre-norm"
    assert len(finalists) == 4
    assert [one.block for one in finalists[1:]] == ["x0-mix", "x0-mix", "sandwich-norm"]
    plain = next(one for one in ended.connections if one.block == "plain")
    assert ended.last_rung(plain) == 0

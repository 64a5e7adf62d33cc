"""At the start: which cells are measured, and what they say in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.studies.advice.at_start import at_start, start_cells
from highway_bench.studies.advice.request import AdviceRequest
from highway_bench.tasks import tasks

Ask = Callable[..., AdviceRequest]
ENDED = {"budget_mismatch": 0.0}


class GivenMetrics:
    """Metrics of two starts, by seed."""

    def __init__(self, *metrics: dict[str, float]) -> None:
        self.metrics = metrics

    def value(self, cell: Cell, metric: str) -> float | None:
        return self.metrics[cell.seed].get(metric)


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (ENDED, ENDED, "in range"),
        ({}, {}, ""),
        ({}, ENDED, "in range"),
        (ENDED | {"signal_explodes_at": 9.0}, ENDED | {"signal_explodes_at": 11.0}, "signal explodes"),
        (
            ENDED | {"signal_vanishes_at": 9.0, "gradient_explodes_at": 1.0},
            ENDED | {"signal_vanishes_at": 9.0},
            "signal vanishes, gradient mixed",
        ),
    ],
)
def test_in_words(ask: Ask, first: dict[str, float], second: dict[str, float], says: str) -> None:
    request = ask()
    given: Any = GivenMetrics(first, second)
    assert at_start(start_cells(request, request.connections[0]), given) == says


def test_a_start_is_that_of_the_trainings(ask: Ask) -> None:
    request = ask("dense", depth=7)
    for one in request.connections:
        cells = start_cells(request, one)
        assert [cell.seed for cell in cells] == [0, 1]
        training = request.run(one, 10, 0.1, 0)
        for cell in cells:
            tasks.get("propagation").check(cell)
            names = ("block", "start", "family", "depth", "width", "dataset")
            assert {name: getattr(cell, name) for name in names} == {name: getattr(training, name) for name in names}

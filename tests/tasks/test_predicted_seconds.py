"""Predicted seconds: by steps for trainings on a CPU, by the closed form for all else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from highway_bench.cell import Cell
from highway_bench.tasks import predicted_costs as predicting
from highway_bench.tasks import tasks
from highway_bench.tasks.predicted_costs import SETUP, predicted_seconds

MakeCell = Callable[..., Cell]


@pytest.fixture
def trained(cell: MakeCell) -> Cell:
    return cell("trainability", depth=50, dataset="digits", steps=100, rate="tuned")


def test_a_step_is_a_line_in_the_depth(trained: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "step_seconds", lambda cell, dataset: 1.0 + 0.5 * cell.depth)
    assert predicted_seconds(trained) == pytest.approx(SETUP + 100 * 26)
    monkeypatch.setattr(predicting, "step_seconds", lambda cell, dataset: 1.0 / cell.depth)  # disturbed
    assert predicted_seconds(trained) == pytest.approx(SETUP + 100 / 24)
    assert predicted_seconds(trained.but(depth=5)) == pytest.approx(SETUP + 100 / 5)


@pytest.mark.parametrize("changes", [{"device": "cuda"}, {"dataset": None}, {"recipe": {}}])
def test_others_have_the_closed_form(trained: Cell, changes: dict[str, object]) -> None:
    other = trained.but(**changes)
    assert predicted_seconds(other) == tasks.get("trainability").cost(other).seconds

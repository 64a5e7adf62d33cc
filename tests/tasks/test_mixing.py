"""Depth mixing and gates as the task ``gates`` stores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.tasks import Measurement, tasks
from highway_bench.tasks._layer_measurements import row_measurement

MakeCell = Callable[..., Cell]


def measured(cell: MakeCell, block: str, task: str = "gates", **changes: Any) -> list[Measurement]:
    small = {"width": 8, "depth": 3, "batch_size": 20, "dataset": "digits", "phase": None}
    recipe = {"steps": 20, "optimiser": "adam", "rate": 0.03, "decay": 1.0} if task == "gates" else {}
    (outcome,) = tasks.get(task).measure([cell(task, block, **{**small, **recipe, **changes})])
    assert outcome.error is None
    return list(outcome.measurements)


def rows(result: list[Measurement], metric: str) -> dict[float, list[Any]]:
    return {one.index: list(one.samples or ()) for one in result if one.metric == metric}


def flat(result: list[Measurement], metric: str) -> list[Any]:
    return [value for row in rows(result, metric).values() for value in row]


def test_a_row_has_one_number_for_each_earlier_branch(cell: MakeCell) -> None:
    result = measured(cell, "attn-residual")
    assert flat(result, "mixing_start") == pytest.approx([1, *[1 / 2] * 2, *[1 / 3] * 3])
    trained = rows(result, "mixing_end")
    assert [len(row) for row in trained.values()] == [1, 2, 3]
    assert trained[3] != pytest.approx([1 / 3] * 3, abs=1e-4)
    assert [sum(row) for row in rows(result, "mixing_share_end").values()] == pytest.approx([1, 1, 1], abs=1e-4)


def test_deep_networks_have_rows_of_some_layers(cell: MakeCell) -> None:
    result = measured(cell, "residual", depth=30, steps=2)
    assert list(rows(result, "mixing_start")) == [1, *range(3, 31, 3)]


def test_numbers_that_are_not_finite_are_null() -> None:
    assert row_measurement("mixing_end", [float("nan"), 2.0], 2).samples == [None, 2.0]
    assert row_measurement("mixing_end", [float("nan")], 1).value is None


def test_the_start_has_a_gru_s_gates_and_the_change_of_the_stream(cell: MakeCell) -> None:
    (single,) = (
        one.value for one in measured(cell, "gru-gate", "propagation") if one.metric == "gate_mean" and not one.axis
    )
    assert single == pytest.approx(0.13, abs=0.06)  # σ(−2) = 0.119
    (change,) = (one.value for one in measured(cell, "rezero", "propagation") if one.metric == "stream_change")
    assert change == 0

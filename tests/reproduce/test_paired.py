"""Two arms on the same seeds: their runs, and the ratio of their losses."""

from __future__ import annotations

import math
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.reproduce.arms import ArmRuns, loss_record, ratio
from highway_bench.reproduce.base import measured
from highway_bench.reproduce.quantities import scatter_of

BASE = {0: 0.1, 1: 0.2, 2: 0.4, 3: 0.8}


def runs(losses: dict[int, float]) -> ArmRuns:
    return {seed: {"final_loss": loss} for seed, loss in losses.items()}


GONE = dict.fromkeys(BASE, math.inf)


def test_the_ratio_is_paired_by_seed() -> None:
    double = {seed: 2 * loss * (1 + 0.02 * (-1) ** seed) for seed, loss in BASE.items()}
    one = ratio("loss", runs(double), runs(BASE), 0.95)
    assert one.value == pytest.approx(2.0, rel=0.01)
    assert one.high / one.low < 1.2  # although the losses of the seeds span a decade
    assert str(one).startswith("loss: 2.00× [1.9")
    assert str(one).endswith("(n = 4)")
    assert math.isnan(ratio("", runs({0: 1.0, 9: 1.0}), runs(BASE), 0.95).low)


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        (GONE, BASE, math.inf),
        (BASE, GONE, 0.0),
        (GONE, GONE, math.nan),
        (BASE | {0: math.inf}, BASE, math.nan),
        (GONE, {}, math.nan),
        (BASE | {0: 0.0}, BASE, math.nan),
        (BASE, BASE | {0: 0.0}, math.nan),
        ({}, {}, math.nan),
    ],
)
def test_runs_that_diverged_are_not_left_out(a: dict[int, float], b: dict[int, float], value: float) -> None:
    one = ratio("loss", runs(a), runs(b), 0.95)
    assert (one.low, one.high) == pytest.approx((value, value), nan_ok=True)
    assert math.isnan(scatter_of(one, 0.95))  # so that the power of such a finding is unknown


def test_a_record_of_losses() -> None:
    result = loss_record(
        {
            0: {"final_loss": 0.1, "test_accuracy": 0.8, "params": 7.0},
            1: {"final_loss": 0.4, "test_accuracy": 0.9},
            2: {"final_loss": math.inf, "test_accuracy": math.nan},
        }
    )
    assert (result["n"], result["diverged"], result["params"]) == (3, 1, 7.0)
    assert (result["loss"], result["accuracy"]) == (pytest.approx(0.2), pytest.approx(0.85))
    assert math.isnan(result["rate"])
    assert math.isnan(loss_record({})["loss"])
    assert math.isnan(loss_record(runs({0: 0.0, 1: 0.1}))["loss"])


def test_cells_that_differ_in_any_field_have_their_own_metrics(rows_of: Any) -> None:
    one = Cell(task="trainability", block="plain", family="dense", depth=2, width=8, nominal_width=8, seq_len=None)
    cells = [one, one.but(device="cuda"), one.but(match="width"), one.but(nominal_width=9), one.but(seq_len=5)]
    losses = {cell: {"final_loss": 0.1 * number} for number, cell in enumerate(cells, start=1)}
    assert measured(rows_of(losses), [*cells, one.but(seed=1)]) == {**losses, one.but(seed=1): {}}

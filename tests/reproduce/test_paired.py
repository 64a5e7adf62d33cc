"""Two arms on the same seeds: the verdicts by the ratio of their losses."""

import math
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.reproduce._paired import level, log_ratio, loss_record, measured, worse
from highway_bench.reproduce.base import Verdict

BASE = {0: 0.1, 1: 0.2, 2: 0.4, 3: 0.8}
GONE = dict.fromkeys(BASE, math.inf)


def times(factor: float, spread: float = 0.02) -> dict[int, float]:
    return {seed: loss * factor * (1 + spread * (-1) ** seed) for seed, loss in BASE.items()}


def test_the_ratio_is_paired_by_seed() -> None:
    ratio = log_ratio(times(2.0), BASE, 0.95)
    assert ratio is not None
    assert 10**ratio.value == pytest.approx(2.0, rel=0.01)
    assert ratio.high - ratio.low < 0.1  # although the losses of the seeds span a decade
    assert log_ratio({0: 1.0, 9: 1.0}, BASE, 0.95) is None


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (times(2.0), BASE, Verdict.REPRODUCED),
        (times(0.5), BASE, Verdict.CONTRADICTED),
        (times(1.0), BASE, Verdict.NOT_TESTABLE),
        ({0: 1.0}, BASE, Verdict.NOT_TESTABLE),
        ({}, {}, Verdict.NOT_TESTABLE),
        (GONE, BASE, Verdict.REPRODUCED),
        (BASE, GONE, Verdict.NOT_TESTABLE),
        (GONE, GONE, Verdict.NOT_TESTABLE),
        (BASE | {0: math.inf}, BASE, Verdict.NOT_TESTABLE),
        (GONE, {}, Verdict.NOT_TESTABLE),
    ],
)
def test_worse(a: dict[int, float], b: dict[int, float], verdict: Verdict) -> None:
    assert worse(a, b, 0.95)[1] == verdict


@pytest.mark.parametrize(
    ("a", "verdict"),
    [
        (times(1.0), Verdict.REPRODUCED),
        (times(0.2), Verdict.REPRODUCED),
        (times(2.0), Verdict.CONTRADICTED),
        (times(1.5), Verdict.NOT_TESTABLE),
        (GONE, Verdict.CONTRADICTED),
    ],
)
def test_level(a: dict[int, float], verdict: Verdict) -> None:
    assert level(a, BASE, 0.95, factor=1.5)[1] == verdict


def test_the_text_has_an_interval_and_a_count() -> None:
    assert worse(times(2.0), BASE, 0.95)[0].startswith("loss 2.00× [1.9")
    assert worse(times(2.0), BASE, 0.95)[0].endswith("(n = 4)")
    assert worse(GONE, BASE, 0.95)[0].startswith("diverged at 4 of 4 seeds")


def test_a_record_of_losses() -> None:
    result = loss_record(
        {0: 0.1, 1: 0.4, 2: math.inf},
        [{"test_accuracy": 0.8, "params": 7.0}, {"test_accuracy": 0.9}, {"test_accuracy": math.nan}],
    )
    assert (result["n"], result["diverged"], result["params"]) == (3, 1, 7.0)
    assert (result["loss"], result["accuracy"]) == (pytest.approx(0.2), pytest.approx(0.85))
    assert math.isnan(result["rate"])
    assert math.isnan(loss_record({}, [])["loss"])


def test_cells_that_differ_in_any_field_have_their_own_metrics(rows_of: Any) -> None:
    one = Cell(task="trainability", block="plain", family="dense", depth=2, width=8, nominal_width=8, seq_len=None)
    cells = [one, one.but(device="cuda"), one.but(match="width"), one.but(nominal_width=9), one.but(seq_len=5)]
    losses = {cell: {"final_loss": 0.1 * number} for number, cell in enumerate(cells, start=1)}
    assert measured(rows_of(losses), [*cells, one.but(seed=1)]) == {**losses, one.but(seed=1): {}}

"""Language: what a run stores of it, when it succeeds, and which cells are skipped."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.tasks import Skip, tasks

MakeCell = Callable[..., Cell]
TASK = tasks.get("trainability")
CAUSAL = {"causal": True}


@pytest.fixture
def language(cell: MakeCell, tmp_path: Path) -> Callable[..., Cell]:
    """A cell on a text of counted lines, in which a trigram predicts most bytes."""
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"{number % 7} sheep jump over {number % 5} fences\n" for number in range(300)))

    def make(family: str = "transformer", **changes: Any) -> Cell:
        recipe = {"optimiser": "adamw", "rate": 0.01, "schedule": "cosine", "warm_up": 5, "steps": 20}
        dataset = {"path": str(file), "length": 16}
        defaults: dict[str, Any] = {"width": 16, "depth": 1, "batch_size": 8, "dataset": "language"}
        cells = cell("trainability", "pre-norm", family, **{**defaults, **changes})
        return cells.but(recipe={**recipe, "dataset": dataset, **cells.recipe})

    return make


def scalars(one: Cell) -> dict[str, float | None]:
    (outcome,) = TASK.measure([one])
    assert outcome.error is None
    return {measurement.metric: measurement.value for measurement in outcome.measurements if not measurement.axis}


def test_a_run_stores_bits_per_byte_and_its_target(language: Callable[..., Cell]) -> None:
    one = language(family_options=CAUSAL)
    result = scalars(one)
    dataset = make_dataset("language", **one.recipe["dataset"])
    assert result["success_loss"] == dataset.reference_loss
    assert result["test_bits"] == pytest.approx(float(result["test_loss"] or 0) / math.log(2))
    assert 0 < float(result["test_bits"] or 0) < 8
    assert 0 < float(result["test_accuracy"] or 0) < 1


def test_a_run_succeeds_at_the_trigrams_loss(language: Callable[..., Cell]) -> None:
    target = float(scalars(language(family_options=CAUSAL))["success_loss"] or 0)
    trained = scalars(language(family_options=CAUSAL, steps=200, depth=2, width=32))
    assert float(trained["final_loss"] or 9) <= target
    assert trained["success"] == 1.0
    assert scalars(language(family_options=CAUSAL))["success"] == 0.0


@pytest.mark.parametrize(("family", "reason"), [("transformer", "causal"), ("bilstm", "later"), ("dense", "tokens")])
def test_a_family_that_would_see_the_targets_is_skipped(
    language: Callable[..., Cell], family: str, reason: str
) -> None:
    with pytest.raises(Skip, match=reason):
        TASK.prepare(language(family))

"""The lecture in Keras: the verdicts for given logs, and that Keras's network and ours are the same network."""

from __future__ import annotations

import importlib
import math
from importlib.util import find_spec
from typing import Any

import pandas as pd
import pytest
import torch

from highway_bench.cell import Cell
from highway_bench.frames.rows import prepared
from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.claims import Verdict
from highway_bench.reproduce.lecture import KERAS_EPOCHS, PRINTED
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row

STUDY = reproductions.get("lecture-keras")
WITH_KERAS = pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed")


def rows_for(factor: float, difference: float) -> pd.DataFrame:
    """Rows of runs whose losses are ``factor`` times the printed ones."""
    rows: list[dict[str, Any]] = []
    for number, cell in enumerate(STUDY.cells(Request(device="cpu"))):
        common: dict[str, Any] = {"status": "ok", "time_utc": "2026-01-01", "machine": "m", "digest": str(number)}
        own = row(**cell.columns(), **common, metric="loss_difference", value=difference)
        if cell.dtype == "float64":
            rows.append(own)
            continue
        for epoch in range(1, KERAS_EPOCHS + 1):
            for metric, loss in zip(("epoch_train_loss", "epoch_test_loss"), PRINTED[epoch], strict=True):
                value = factor * loss * (1 + 0.01 * (cell.seed % 3))
                rows.append(own | {"metric": metric, "axis": "epoch", "index": epoch, "value": value})
    return prepared(pd.DataFrame(rows))


@pytest.mark.parametrize(
    ("factor", "difference", "printed", "same"),
    [
        (1.0, 6e-16, Verdict.REPRODUCED, Verdict.REPRODUCED),
        (5.0, 1e-3, Verdict.CONTRADICTED, Verdict.CONTRADICTED),
    ],
)
def test_the_verdicts(factor: float, difference: float, printed: Verdict, same: Verdict) -> None:
    findings = STUDY.outcome(rows_for(factor, difference), Request()).findings
    assert [one.verdict for one in findings] == [printed] * 2 * KERAS_EPOCHS + [same]


def small(dtype: str, recipe: dict[str, Any]) -> Cell:
    """A cell of the study, on small digits."""
    cell = next(one for one in STUDY.cells(Request(device="cpu")) if one.dtype == dtype)
    rest = {name: value for name, value in cell.recipe.items() if name not in ("dataset", "epochs")}
    return cell.but(width=64, nominal_width=64, batch_size=100, dataset="digits", recipe={**rest, **recipe})


@WITH_KERAS
def test_keras_trains_the_network_that_we_train() -> None:
    """From the same weights on the same batches, the losses of 20 steps of float64 are equal but for rounding."""
    lecture = importlib.import_module("highway_bench.published_code.lecture")
    (outcome,) = lecture.KerasLecture().measure([small("float64", {})])
    assert outcome.error is None
    (measured,) = outcome.measurements
    assert measured.metric == "loss_difference"
    assert measured.value < 1e-13
    start, end = (float(text) for text in measured.message.split("from ")[1].removesuffix(" nat").split(" to "))
    assert end < start, "the networks did not train"


@WITH_KERAS
def test_the_loss_is_that_of_keras_where_it_clips_probabilities() -> None:
    lecture = importlib.import_module("highway_bench.published_code.lecture")
    logits = torch.tensor([[40.0, 0.0], [0.0, 40.0], [0.1, 0.2]], dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 0, 1])
    with lecture.keras_in(small("float64", {})) as keras:
        theirs = keras.losses.sparse_categorical_crossentropy(targets, logits.softmax(-1)).mean()
    ours = lecture.clipped_cross_entropy(logits, targets)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-14)
    (own,), (other,) = (torch.autograd.grad(loss, logits, retain_graph=True) for loss in (ours, theirs))
    torch.testing.assert_close(own, other)
    assert (own[:2] == 0).all()  # beyond the bounds


@WITH_KERAS
def test_keras_prints_the_losses_of_epochs() -> None:
    lecture = importlib.import_module("highway_bench.published_code.lecture")
    (outcome,) = lecture.KerasLecture().measure([small("float32", {"epochs": 1}).but(depth=2)])
    assert outcome.error is None
    losses = {one.metric: one.value for one in outcome.measurements if one.axis == "epoch"}
    assert losses.keys() == {"epoch_train_loss", "epoch_test_loss", "epoch_test_accuracy"}
    assert losses["epoch_test_loss"] < math.log(10)


def test_without_keras_a_run_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    lecture = importlib.import_module("highway_bench.published_code.lecture")
    monkeypatch.setattr(lecture, "find_spec", lambda name: None)
    (outcome,) = lecture.KerasLecture().measure([small("float64", {})])
    assert type(outcome.error).__name__ == "Skip"
    assert str(outcome.error) == "Keras is not installed: pip install highway-bench[peers]"


@WITH_KERAS
def test_keras_computes_on_the_cell_s_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default it takes a GPU that the machine has."""
    lecture = importlib.import_module("highway_bench.published_code.lecture")
    cell = small("float32", {})
    with lecture.keras_in(cell):
        from keras.src.backend.torch import core
    monkeypatch.setattr(core, "DEFAULT_DEVICE", "cuda")
    assert core.get_device() == "cuda"
    with lecture.keras_in(cell):
        assert core.get_device() == "cpu"

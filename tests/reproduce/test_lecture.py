"""The lecture, by our code and in Keras: its protocol, the verdicts for given curves, and that both train alike."""

import math
from importlib.util import find_spec

import pandas as pd
import pytest
import torch

from highway_bench.published_code import lecture as published
from highway_bench.studies.reproduce import lecture
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.lecture import KERAS_EPOCHS, PRINTED, SEEDS
from highway_bench.studies.reproduce.request import Request
from tests.reproduce import conftest
from tests.reproduce.conftest import C, N, R, U, verdicts

LECTURE, IN_KERAS = reproductions.get("lecture"), reproductions.get("lecture-keras")
WITH_KERAS = pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed")
ALL = Request(epochs=50)
LOSSES = ("epoch_train_loss", "epoch_test_loss")


def losses_of(curves, seed):
    """The losses by epoch, which differ by 1 % between seeds."""
    return {
        (name, "epoch", epoch): loss * (1 + 0.01 * (seed % 2))
        for epoch, losses in curves.items()
        for name, loss in zip(LOSSES, losses, strict=True)
    }


def rows_of(curves, accuracy=0.9827, seeds=SEEDS):
    """Rows of all seeds."""
    last = max(curves)
    return conftest.rows_of(
        {
            cell: losses_of(curves, cell.seed)
            | {("epoch_test_accuracy", "epoch", last): accuracy + 0.0004 * (cell.seed % 2)}
            for cell in LECTURE.cells(Request(epochs=last, seeds=seeds))
        }
    )


def changed(factor, *which):
    """The printed losses; those ``which`` are named by epoch and index, by default all, times a factor."""
    return {
        epoch: (losses[0] * (factor if not which or (epoch, 0) in which else 1),
                losses[1] * (factor if not which or (epoch, 1) in which else 1))
        for epoch, losses in PRINTED.items()
    }  # fmt: skip


def test_seeds_that_were_seen_before_the_rule_do_not_decide():
    """Version 3 of the rules followed the rows of seeds 0 to 2."""
    rows = rows_of(PRINTED)
    seen = rows[rows["seed"] < 6].assign(seed=lambda own: own["seed"] - 3, value=9.0)
    assert set(seen["seed"]) == {0, 1, 2}
    assert set(verdicts(LECTURE.outcome(pd.concat([rows, seen]), ALL))) == {R}
    assert set(verdicts(LECTURE.outcome(rows_of(PRINTED, seeds=SEEDS - 1), ALL))) == {N}


def test_a_run_that_the_prediction_interval_does_not_have_is_not_reproduced():
    """The mean is within a factor of 2, but no run comes near the printed loss."""
    outcome = LECTURE.outcome(rows_of(changed(1.5, (1, 0))), ALL)
    assert verdicts(outcome) == [U] + [R] * (len(outcome.findings) - 1)


def test_epochs_that_are_not_trained_have_no_power_and_no_verdict():
    powers = [claim.power() for claim in LECTURE.claims(Request())]
    assert [power.power > 0.9 for power in powers if power] == [True] * 6 + [False] * 5
    few = {epoch: PRINTED[epoch] for epoch in (1, 2, 3)}
    assert verdicts(LECTURE.outcome(rows_of(few), Request())) == [R] * 6 + [N] * 5


@pytest.mark.parametrize("epochs", [2, 3])
def test_what_the_lectures_own_code_does_not_reach_contradicts_nothing(monkeypatch, epochs):
    """Nor do epochs for which it was not run."""
    monkeypatch.setattr(lecture, "REACHED", frozenset({("epoch_test_loss", 1)}))
    monkeypatch.setattr(lecture, "KERAS_EPOCHS", epochs)
    first, second, *_, last = LECTURE.outcome(rows_of(changed(3), 0.9), ALL).findings
    assert (first.verdict, second.verdict, last.verdict) == (N, C, N)
    assert (first.why, last.why) == (lecture.UNREACHED_TEXT, lecture.UNKNOWN_TEXT)


@pytest.mark.parametrize(
    ("epoch", "index", "factor", "accuracy"),
    [(3, 0, 2.1, 0.9827), (3, 0, 0.4, 0.9827), (50, 0, 5.5, 0.9827), (49, 1, 1.6, 0.9827), (50, 2, 1.0, 0.9770)],
)
def test_a_number_out_of_its_band_contradicts(monkeypatch, epoch, index, factor, accuracy):
    """Where the lecture's own code reaches every printed number."""
    every = {(metric, epoch) for metric in (*LOSSES, "epoch_test_accuracy") for epoch in PRINTED}
    monkeypatch.setattr(lecture, "REACHED", every)
    monkeypatch.setattr(lecture, "KERAS_EPOCHS", max(PRINTED))
    outcome = LECTURE.outcome(rows_of(changed(factor, (epoch, index)), accuracy), ALL)
    (contradicted,) = [number for number, one in enumerate(outcome.findings) if one.verdict == C]
    assert contradicted == 2 * [*PRINTED].index(epoch) + index


@pytest.mark.parametrize(("factor", "difference", "expected"), [(1.0, 6e-16, R), (5.0, 1e-3, C)])
def test_the_verdicts_in_keras(factor, difference, expected):
    curves = {epoch: losses for epoch, losses in changed(factor).items() if epoch <= KERAS_EPOCHS}
    rows = conftest.rows_of(
        {
            cell: {"loss_difference": difference} if cell.dtype == "float64" else losses_of(curves, cell.seed)
            for cell in IN_KERAS.cells(Request(device="cpu"))
        }
    )
    assert verdicts(IN_KERAS.outcome(rows, Request())) == [expected] * (2 * KERAS_EPOCHS + 1)


def small(dtype, recipe):
    """A cell of the study, on small digits."""
    cell = next(one for one in IN_KERAS.cells(Request(device="cpu")) if one.dtype == dtype)
    rest = {name: value for name, value in cell.recipe.items() if name not in ("dataset", "epochs")}
    return cell.but(width=64, nominal_width=64, batch_size=100, dataset="digits", recipe={**rest, **recipe})


@WITH_KERAS
def test_keras_trains_the_network_that_we_train():
    """From the same weights on the same batches, the losses of 20 steps of float64 are equal but for rounding."""
    (outcome,) = published.KerasLecture().measure([small("float64", {})])
    assert outcome.error is None
    (measured,) = outcome.measurements
    assert measured.metric == "loss_difference"
    assert measured.value < 1e-13
    start, end = (float(text) for text in measured.message.split("from ")[1].removesuffix(" nat").split(" to "))
    assert end < start, "the networks did not train"


@WITH_KERAS
def test_the_loss_is_that_of_keras_where_it_clips_probabilities():
    logits = torch.tensor([[40.0, 0.0], [0.0, 40.0], [0.1, 0.2]], dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 0, 1])
    with published.keras_in(small("float64", {})) as keras:
        theirs = keras.losses.sparse_categorical_crossentropy(targets, logits.softmax(-1)).mean()
    ours = published.clipped_cross_entropy(logits, targets)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-14)
    (own,), (other,) = (torch.autograd.grad(loss, logits, retain_graph=True) for loss in (ours, theirs))
    torch.testing.assert_close(own, other)
    assert (own[:2] == 0).all()  # beyond the bounds


@WITH_KERAS
def test_keras_prints_the_losses_of_epochs():
    (outcome,) = published.KerasLecture().measure([small("float32", {"epochs": 1}).but(depth=2)])
    assert outcome.error is None
    losses = {one.metric: one.value for one in outcome.measurements if one.axis == "epoch"}
    assert losses.keys() == {"epoch_train_loss", "epoch_test_loss", "epoch_test_accuracy"}
    assert losses["epoch_test_loss"] < math.log(10)


def test_without_keras_a_run_is_skipped_with_the_reason(monkeypatch):
    monkeypatch.setattr(published, "find_spec", lambda name: None)
    (outcome,) = published.KerasLecture().measure([small("float64", {})])
    assert type(outcome.error).__name__ == "Skip"
    assert "[peers]" in str(outcome.error)


@WITH_KERAS
def test_keras_computes_on_the_cell_s_device(monkeypatch):
    """By default it takes a GPU that the machine has."""
    cell = small("float32", {})
    with published.keras_in(cell):
        from keras.src.backend.torch import core
    monkeypatch.setattr(core, "DEFAULT_DEVICE", "cuda")
    assert core.get_device() == "cuda"
    with published.keras_in(cell):
        assert core.get_device() == "cpu"

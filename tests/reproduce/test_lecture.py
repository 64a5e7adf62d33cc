"""The lecture: its protocol, and the verdicts for given curves."""

import math
from typing import Any

import pandas as pd
import pytest

from highway_bench.frames.rows import prepared
from highway_bench.reproduce import lecture
from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.claims import Verdict
from highway_bench.reproduce.lecture import PRINTED, SEEDS, STEPS_PER_EPOCH
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row

LECTURE = reproductions.get("lecture")


def rows_of(curves: dict[int, tuple[float, float]], accuracy: float, seeds: int = SEEDS) -> pd.DataFrame:
    """Rows of all seeds, with losses that differ by 1 % between them."""
    rows: list[dict[str, Any]] = []
    for cell in LECTURE.cells(Request(epochs=max(curves), seeds=seeds)):
        common: dict[str, Any] = {"status": "ok", "time_utc": "2026-01-01", "machine": "m", "digest": str(cell.seed)}
        own = row(**cell.columns(), **common, metric="epoch_test_accuracy", axis="epoch", value=accuracy)
        rows.append(own | {"index": max(curves), "value": accuracy + 0.0004 * (cell.seed % 2)})
        for epoch, losses in curves.items():
            for metric, loss in zip(("epoch_train_loss", "epoch_test_loss"), losses, strict=True):
                value = loss * (1 + 0.01 * (cell.seed % 2))
                rows.append(own | {"metric": metric, "value": value, "index": epoch})
    return prepared(pd.DataFrame(rows))


def test_the_protocol() -> None:
    cell, *_ = LECTURE.cells(Request())
    assert cell.recipe["steps"] == 3 * math.ceil(52_500 / 1_000) == 3 * STEPS_PER_EPOCH
    assert (cell.depth, cell.width, cell.batch_size, cell.block_options) == (20, 784, 1_000, {"gate_bias": 0.0})
    assert len({cell.seed for cell in LECTURE.cells(Request(seeds=4))}) == 4


def test_the_published_curves_reproduce_themselves() -> None:
    outcome = LECTURE.outcome(rows_of(PRINTED, 0.9830), Request(epochs=50))
    assert {one.verdict for one in outcome.findings} == {Verdict.REPRODUCED}


def test_seeds_that_were_seen_before_the_rule_do_not_decide() -> None:
    """Version 3 of the rules followed the rows of seeds 0 to 2."""
    rows = rows_of(PRINTED, 0.9830)
    seen = rows[rows["seed"] < 6].assign(seed=lambda own: own["seed"] - 3, value=9.0)
    assert set(seen["seed"]) == {0, 1, 2}
    wrong = pd.concat([rows, seen])
    assert {one.verdict for one in LECTURE.outcome(wrong, Request(epochs=50)).findings} == {Verdict.REPRODUCED}
    few = LECTURE.outcome(rows_of(PRINTED, 0.9830, SEEDS - 1), Request(epochs=50)).findings
    assert {one.verdict for one in few} == {Verdict.NOT_TESTABLE}
    assert "7 of at least 8 runs" in few[0].measured
    assert few[0].claim.rule.endswith("rule 3 of 2026-11-24, on seeds from 3 on")


def test_a_run_that_the_prediction_interval_does_not_have_is_not_reproduced() -> None:
    """The mean is within a factor of 2, but no run comes near the printed loss."""
    train, test = PRINTED[1]
    outcome = LECTURE.outcome(rows_of(PRINTED | {1: (1.5 * train, test)}, 0.9827), Request(epochs=50))
    first, *others = outcome.findings
    assert first.verdict == Verdict.UNDECIDED
    assert "the printed one lies outside of the prediction interval" in first.measured
    assert {one.verdict for one in others} == {Verdict.REPRODUCED}


def test_epochs_that_are_not_trained_have_no_power() -> None:
    claims = LECTURE.claims(Request())
    powers = {claim.statement: claim.power() for claim in claims}
    assert [power.power > 0.9 for power in powers.values() if power] == [True] * 6 + [False] * 5
    assert claims[-1].power_text(claims[-1].power()) == "0 runs: needs --epochs 50: about 14 core-hours"
    full = LECTURE.claims(Request(epochs=50))
    assert all(power is not None and power.power > 0.9 for power in (claim.power() for claim in full))


def test_what_the_lectures_own_code_does_not_reach_contradicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lecture, "REACHED", frozenset({("epoch_test_loss", 1)}))
    losses = {epoch: (3 * train, 3 * test) for epoch, (train, test) in PRINTED.items()}
    first, second, *_ = LECTURE.outcome(rows_of(losses, 0.9827), Request(epochs=50)).findings
    assert (first.verdict, second.verdict) == (Verdict.NOT_TESTABLE, Verdict.CONTRADICTED)
    assert first.why == lecture.UNREACHED_TEXT


def test_what_was_not_run_is_not_testable() -> None:
    few = {epoch: PRINTED[epoch] for epoch in (1, 2, 3)}
    verdicts = [one.verdict for one in LECTURE.outcome(rows_of(few, 0.9), Request()).findings]
    assert verdicts == [Verdict.REPRODUCED] * 6 + [Verdict.NOT_TESTABLE] * 5


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the lecture's own code reached every printed number."""
    losses = {(metric, epoch) for metric in ("epoch_train_loss", "epoch_test_loss") for epoch in PRINTED}
    monkeypatch.setattr(lecture, "REACHED", losses | {("epoch_test_accuracy", max(PRINTED))})
    monkeypatch.setattr(lecture, "KERAS_EPOCHS", max(PRINTED))


def test_epochs_for_which_the_lectures_own_code_was_not_run_contradict_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lecture, "KERAS_EPOCHS", 2)
    losses = {epoch: (3 * train, 3 * test) for epoch, (train, test) in PRINTED.items()}
    findings = LECTURE.outcome(rows_of(losses, 0.9), Request(epochs=50)).findings
    assert {one.verdict for one in findings} == {Verdict.NOT_TESTABLE, Verdict.UNDECIDED}
    assert findings[-1].why == lecture.UNKNOWN_TEXT


@pytest.mark.usefixtures("reached")
@pytest.mark.parametrize(("epoch", "index", "factor"), [(3, 0, 2.1), (3, 0, 0.4), (50, 0, 5.5), (49, 1, 1.6)])
def test_a_loss_out_of_its_band_contradicts(epoch: int, index: int, factor: float) -> None:
    losses = list(PRINTED[epoch])
    losses[index] *= factor
    outcome = LECTURE.outcome(rows_of(PRINTED | {epoch: (losses[0], losses[1])}, 0.9827), Request(epochs=50))
    contradicted = [one.claim.statement for one in outcome.findings if one.verdict == Verdict.CONTRADICTED]
    assert len(contradicted) == 1
    assert f"epoch {epoch}:" in contradicted[0]


@pytest.mark.usefixtures("reached")
def test_an_accuracy_out_of_its_band_contradicts() -> None:
    outcome = LECTURE.outcome(rows_of(PRINTED, 0.9770), Request(epochs=50))
    assert [one.verdict for one in outcome.findings][-1] == Verdict.CONTRADICTED

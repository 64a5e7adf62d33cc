"""The faulty BiLSTM: the verdicts for given accuracies, and a run of it through a worker."""

import pytest

from highway_bench.studies.reproduce.base import Reproduction, reproductions
from highway_bench.studies.reproduce.faulty_bilstm import CARRY_FAULT, DEEP, FAULTY
from highway_bench.studies.reproduce.request import Request
from highway_bench.studies.reproduce.running import reproduce
from tests.reproduce.conftest import C, N, R, U, followed, outcome_of, rows_of, verdicts

pytestmark = pytest.mark.usefixtures("data_folder")  # chance is the most frequent class of the reviews
STUDY = reproductions.get("faulty-bilstm")
REQUEST = Request(device="cpu")


def measured(cell, falls, single):
    fall = falls.get(cell.block, 0.25) if cell.depth == DEEP else 0.0
    accuracy = single - fall + 0.002 * (cell.seed % 3)
    return {"final_loss": 0.5, "success": 1.0, "test_accuracy": accuracy, "rate": cell.recipe["rate"]}


@pytest.mark.parametrize(
    ("falls", "single", "expected"),
    [
        ({"highway": 0.0, FAULTY: 0.25}, 0.75, [R, R, R, R]),
        ({"highway": 0.25, FAULTY: 0.25, CARRY_FAULT: 0.0}, 0.75, [R, C, C, C]),
        ({"highway": 0.0, FAULTY: 0.1}, 0.75, [C, R, C, R]),
        ({"highway": 0.0, FAULTY: 0.0}, 0.75, [C, R, C, R]),
        ({"highway": 0.0, FAULTY: 0.0}, 0.5, [N, N, N, N]),
    ],
)
def test_the_verdicts(falls, single, expected):
    rows = rows_of(followed(STUDY, REQUEST, lambda cell: measured(cell, {"plain": 0.2, **falls}, single)))
    rows["params"] = rows["block"].map({"plain": 100.0, "highway": 150.0, FAULTY: 100.0, CARRY_FAULT: 150.0})
    result = STUDY.outcome(rows, REQUEST)
    assert verdicts(result) == [R, *expected]
    assert [one.value for one in result.findings[0].quantities] == [0, 50]


@pytest.mark.parametrize(("collapsed", "expected"), [(1, C), (2, U), (5, U), (8, U), (9, R)])
def test_a_bare_majority_of_seeds_decides_nothing(collapsed, expected):
    def metrics(cell):
        falls = 0.25 * (cell.seed < STUDY.version.seen + collapsed)
        return measured(cell, {"plain": 0.2, "highway": 0.0, FAULTY: falls}, 0.75)

    result = verdicts(outcome_of(STUDY, metrics))
    assert [result[1], result[3]] == [expected] * 2


def test_a_worker_imports_the_block(tmp_path, monkeypatch):
    """It is no entry of the registry for any other command."""
    few = [cell for cell in STUDY.cells(Request(seeds=1, epochs=1)) if cell.block == FAULTY and cell.depth == 1]
    quick = [few[0].but(trial=None, recipe={**few[0].recipe, "steps": 2})]
    monkeypatch.setattr(type(STUDY), "cells", lambda self, request: quick)
    monkeypatch.setattr(type(STUDY), "pending", Reproduction.pending)
    monkeypatch.setattr(type(STUDY), "conclude", lambda self, rows, request: rows)
    result = reproduce("faulty-bilstm", Request(seeds=1, epochs=1), store=tmp_path / "store.sqlite", workers=1)
    assert [str(status) for status in result.summary.counts] == ["stalled"]

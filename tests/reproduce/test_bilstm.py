"""BiLSTMs by depth: the protocol, and the verdicts that given accuracies must get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

from highway_bench.data import make_dataset
from highway_bench.report.frame import prepared
from highway_bench.reproduce import Asked, Outcome, Verdict, bilstm, reproductions
from highway_bench.results.schema import row

BILSTM = reproductions.get("bilstm")
CHANCE = 0.5
NOISE = (0.0, 0.004, -0.004)
Accuracies = Mapping[str, Sequence[float]]


@pytest.fixture(autouse=True)
def chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The corpora's own are read from data that need not be here."""
    monkeypatch.setattr(bilstm, "chance_of", lambda corpus: CHANCE)


def rows_of(accuracies: Accuracies, *, seeds: int | None = None, diverged: bool = False) -> pd.DataFrame:
    """Rows of film reviews: accuracies by block at each of the depths, give or take a little by seed."""
    rows = []
    for number, cell in enumerate(BILSTM.cells(Asked(seeds=seeds))):
        if cell.recipe["dataset"]["corpus"] != "movie-reviews":
            continue
        own = cell.columns() | {"time_utc": "2026-01-01", "machine": "m", "digest": str(number), "params": 1_000,
                                "status": "diverged" if diverged else "ok"}
        value = accuracies[cell.block][bilstm.DEPTHS.index(cell.depth)] + NOISE[cell.seed % 3]
        scalars = {} if diverged else {"test_accuracy": value, "train_accuracy": 0.9}
        rows += [row(**own, metric=metric, value=one) for metric, one in (scalars | {"step_seconds": 0.1}).items()]
        rows += [row(**own, metric="epoch_test_accuracy", axis="epoch", value=value - 0.01 * (3 - epoch))
                 | {"index": epoch} for epoch in (1, 2, 3)]
    return prepared(pd.DataFrame(rows))


def outcome(accuracies: Accuracies, *, seeds: int | None = None) -> Outcome:
    return BILSTM.outcome(rows_of(accuracies, seeds=seeds), Asked(seeds=seeds))


def verdicts(found: Outcome) -> list[Verdict]:
    return [one.verdict for one in found.findings]


LIKE_THE_BLOG = {"plain": [0.76, 0.76, 0.74, 0.60, 0.50], "highway": [0.76, 0.76, 0.75, 0.74, 0.72],
                 "residual": [0.76, 0.76, 0.76, 0.76, 0.75]}
FLAT = {block: [0.76] * 5 for block in bilstm.BLOCKS}


def test_every_block_gets_the_same_training_and_nearly_the_same_parameters() -> None:
    cells = BILSTM.cells(Asked())
    assert {(cell.block, cell.width) for cell in cells} == {("plain", 64), ("highway", 60), ("residual", 64)}
    for corpus in bilstm.CORPORA:
        own = [cell for cell in cells if cell.recipe["dataset"]["corpus"] == corpus]
        assert len({str(cell.recipe) for cell in own}) == 1
        assert len(own) == 3 * 5 * 3
    assert {cell.depth for cell in BILSTM.cells(Asked(depths=(10,), epochs=1))} == {10}


def test_steps_are_whole_epochs(data_folder: Path) -> None:
    for name, corpus in bilstm.CORPORA.items():
        train = make_dataset("sentiment", corpus=name).load().train
        assert corpus.steps_per_epoch == len(train.inputs) // bilstm.BATCH


def test_like_the_blog() -> None:
    found = outcome(LIKE_THE_BLOG)
    assert verdicts(found) == [Verdict.REPRODUCED] * 4
    assert "16 layers: a fall of 4.0" in found.findings[2].measured
    (table,), (picture,) = found.tables, found.pictures
    assert len(table.entries) == 15
    assert "plain 76 → 50 %, highway 76 → 72 %" in picture.title


def test_a_single_seed_gives_no_interval_and_no_verdict() -> None:
    found = outcome(LIKE_THE_BLOG, seeds=1)
    assert set(verdicts(found)) == {Verdict.NOT_TESTABLE}
    assert "[" not in found.findings[1].measured
    column = [head.text for head in found.tables[0].heads].index("test accuracy")
    assert all("[" not in entries[column].text for entries in found.tables[0].entries)


def test_depth_that_costs_nothing_contradicts() -> None:
    assert verdicts(outcome(FLAT)) == [Verdict.REPRODUCED, Verdict.CONTRADICTED, Verdict.CONTRADICTED,
                                                Verdict.NOT_TESTABLE]


def test_depth_that_helps_contradicts() -> None:
    better = FLAT | {"plain": [0.70, 0.76, 0.76, 0.76, 0.76]}
    assert verdicts(outcome(better))[0] == Verdict.CONTRADICTED


def test_a_gate_that_falls_more_contradicts() -> None:
    swapped = LIKE_THE_BLOG | {"plain": LIKE_THE_BLOG["highway"], "highway": LIKE_THE_BLOG["plain"]}
    assert verdicts(outcome(swapped))[3] == Verdict.CONTRADICTED


def test_nothing_is_said_where_one_layer_has_not_learnt_or_seeds_are_few() -> None:
    nothing = {block: [CHANCE] * 5 for block in bilstm.BLOCKS}
    for found in (outcome(nothing), outcome(LIKE_THE_BLOG, seeds=2)):
        assert set(verdicts(found)) == {Verdict.NOT_TESTABLE}


def test_a_run_that_diverged_counts_with_chance_accuracy() -> None:
    found = BILSTM.outcome(rows_of(FLAT, diverged=True), Asked())
    assert set(verdicts(found)) == {Verdict.NOT_TESTABLE}
    column = [head.text for head in found.tables[0].heads].index("diverged")
    assert {entries[column].text for entries in found.tables[0].entries} == {"3"}


def test_runs_that_failed_are_no_accuracies() -> None:
    rows = rows_of(FLAT).assign(status="timeout", value=float("nan"))
    found = BILSTM.outcome(rows, Asked())
    assert found.findings == []
    assert list(found.pictures) == []

"""BiLSTMs by depth: the protocol, and the verdicts for given accuracies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.studies.reproduce import bilstm
from highway_bench.studies.reproduce.base import Conclusion, reproductions
from highway_bench.studies.reproduce.claims import Evidence, Verdict
from highway_bench.studies.reproduce.request import Request
from tests.reproduce import conftest
from tests.reproduce.conftest import C, N, R, U

BILSTM = reproductions.get("bilstm")
CHANCE = 0.5
NOISE = (0.0, 0.004, -0.004)  # the same at every depth, so differences between depths do not have it
Accuracies = Mapping[str, Sequence[float]]


@pytest.fixture(autouse=True)
def chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the chance of the corpora, whose data may be missing."""
    monkeypatch.setattr(bilstm, "chance_of", lambda corpus: CHANCE)


def rows_of(accuracies: Accuracies, *, seeds: int | None = None, diverged: bool = False) -> pd.DataFrame:
    """Rows of both corpora and of the tuning runs: accuracies by block and depth, with small differences by seed."""

    def metrics(cell: Cell) -> dict[Any, float]:
        accuracy = accuracies[cell.block][bilstm.DEPTHS.index(cell.depth)]
        accuracy += NOISE[(cell.seed - BILSTM.version.seen) % 3]
        ended = {"final_loss": math.inf if diverged else 0.5, "rate": cell.recipe["rate"], "step_seconds": 0.1}
        return ended | {
            "test_accuracy": math.inf if diverged else accuracy,
            "train_accuracy": 0.9,
            ("epoch_test_accuracy", "epoch", 1): accuracy - 0.01,
            ("epoch_test_accuracy", "epoch", 2): accuracy,
        }

    rows = conftest.rows_of(conftest.followed(BILSTM, Request(seeds=seeds), metrics), params=1_000)
    return rows.assign(status="diverged") if diverged else rows


def outcome(accuracies: Accuracies, *, seeds: int | None = None) -> Conclusion:
    return BILSTM.outcome(rows_of(accuracies, seeds=seeds), Request(seeds=seeds))


def verdicts(result: Conclusion) -> list[Verdict]:
    """The verdicts on one corpus. Both corpora have the same rows."""
    first, second = (conftest.verdicts(result, corpus) for corpus in bilstm.CORPORA)
    assert first == second
    return first


LIKE_THE_BLOG = {
    "plain": [0.76, 0.76, 0.74, 0.50],
    "highway": [0.76, 0.76, 0.75, 0.72],
    "residual": [0.76, 0.76, 0.76, 0.75],
}
FLAT = {block: [0.76] * 4 for block in bilstm.BLOCKS}


def test_every_block_gets_the_same_training_and_nearly_the_same_parameters() -> None:
    arms = BILSTM.arms(Request())
    cells = [one.template for one in arms.values()]
    assert {(cell.block, cell.width) for cell in cells} == {("plain", 64), ("highway", 60), ("residual", 64)}
    assert len({str(one.first) for one in arms.values()}) == 1
    for corpus in bilstm.CORPORA:
        assert len({str(cell.recipe) for cell in cells if cell.recipe["dataset"]["corpus"] == corpus}) == 1
        seeds = {depth: len(arms[corpus, depth, "highway"].fresh) for depth in bilstm.DEPTHS}
        assert seeds == {1: 11, 2: 3, 4: 3, 10: 11}
    assert {cell.depth for cell in BILSTM.cells(Request(depth=(10,), epochs=1))} == {10}


def test_steps_are_whole_epochs(data_folder: Path) -> None:
    for name, corpus in bilstm.CORPORA.items():
        train = make_dataset("sentiment", corpus=name).load().train
        assert corpus.steps_per_epoch == len(train.inputs) // bilstm.BATCH


def test_like_the_blog() -> None:
    result = outcome(LIKE_THE_BLOG)
    assert verdicts(result) == [R] * 4
    assert "10 layers, highway: 4.00 points" in result.findings[2].measured
    (table,), (picture,) = result.tables, result.pictures
    assert len(table.entries) == 2 * 12
    assert "plain" in picture.alt
    assert {one.claim.evidence for one in result.findings} == {Evidence.SECONDARY}


def test_a_single_seed_gives_no_interval_and_no_verdict() -> None:
    result = outcome(LIKE_THE_BLOG, seeds=1)
    assert set(verdicts(result)) == {N}


def test_depth_that_costs_nothing_contradicts() -> None:
    assert verdicts(outcome(FLAT)) == [
        R,
        C,
        C,
        U,
    ]


def test_depth_that_helps_contradicts() -> None:
    better = FLAT | {"plain": [0.70, 0.76, 0.76, 0.76]}
    assert verdicts(outcome(better))[0] == C


def spread(rows: pd.DataFrame, depth: int, by: float) -> pd.DataFrame:
    """``rows`` with a larger spread over the seeds of one depth, and the same mean."""
    own = (rows["depth"] == depth) & (rows["metric"] == "test_accuracy")
    return rows.assign(value=rows["value"] + own * by * (1 - 2 * ((rows["seed"] - BILSTM.version.seen) % 2)))


def test_a_mean_with_a_wide_interval_decides_nothing() -> None:
    wide = verdicts(BILSTM.outcome(spread(rows_of(LIKE_THE_BLOG), 10, 0.4), Request()))
    assert {wide[0], *wide[2:]} == {U}
    assert set(verdicts(BILSTM.outcome(spread(rows_of(FLAT), 10, 0.2), Request()))[:1]) == {U}


@pytest.mark.parametrize(
    ("collapsed", "expected"),
    [(2, C), (3, U), (8, U), (9, R)],
)
def test_a_random_guess_is_counted_by_seed(collapsed: int, expected: Verdict) -> None:
    """An accuracy is at chance or far above it, so the mean of 11 seeds says little: the rate at chance decides."""
    rows = rows_of(FLAT)
    below = (rows["block"] == "plain") & (rows["depth"] == 10) & (rows["metric"] == "test_accuracy")
    below &= rows["seed"] < BILSTM.version.seen + collapsed
    result = BILSTM.outcome(rows.assign(value=rows["value"].mask(below, CHANCE + 0.019)), Request())
    assert verdicts(result)[1] == expected
    assert f"10 layers: {100 * collapsed / 11:.1f} % [" in result.findings[1].measured


def test_a_gate_that_falls_more_contradicts() -> None:
    swapped = LIKE_THE_BLOG | {"plain": LIKE_THE_BLOG["highway"], "highway": LIKE_THE_BLOG["plain"]}
    assert verdicts(outcome(swapped))[3] == C


def test_nothing_is_decided_if_one_layer_has_not_learnt_or_seeds_are_few() -> None:
    nothing = {block: [CHANCE] * 4 for block in bilstm.BLOCKS}
    for result in (outcome(nothing), outcome(LIKE_THE_BLOG, seeds=2)):
        assert set(verdicts(result)) == {N}


def test_a_run_that_diverged_counts_with_chance_accuracy() -> None:
    result = BILSTM.outcome(rows_of(FLAT, diverged=True), Request())
    assert set(verdicts(result)) == {N}
    column = [head.text for head in result.tables[0].heads].index("diverged")
    assert {entries[column] for entries in result.tables[0].entries} == {"3", "11"}


def test_without_ten_layers_the_guess_is_not_judged() -> None:
    rows = rows_of(LIKE_THE_BLOG)
    result = BILSTM.outcome(rows[rows["depth"] < 10], Request(depth=(1, 2, 4)))
    assert verdicts(result)[1] == N
    assert "no run of 10 layers" in result.findings[1].measured

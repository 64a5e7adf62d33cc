"""BiLSTMs by depth: the protocol, and the verdicts for given accuracies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.frames.rows import prepared
from highway_bench.reproduce import bilstm
from highway_bench.reproduce.arms import TunedReproduction
from highway_bench.reproduce.base import Conclusion, reproductions
from highway_bench.reproduce.claims import Evidence, Verdict
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row
from tests.reproduce import conftest

BILSTM = reproductions.get("bilstm")
assert isinstance(BILSTM, TunedReproduction)
CHANCE = 0.5
NOISE = (0.0, 0.004, -0.004)  # the same at every depth, so differences between depths do not have it
Accuracies = Mapping[str, Sequence[float]]


@pytest.fixture(autouse=True)
def chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the chance of the corpora, whose data may be missing."""
    monkeypatch.setattr(bilstm, "chance_of", lambda corpus: CHANCE)


def rows_of(accuracies: Accuracies, *, seeds: int | None = None, diverged: bool = False) -> pd.DataFrame:
    """Rows of both corpora and of the tuning runs: accuracies by block and depth, with small differences by seed."""

    def accuracy(cell: Cell) -> float:
        return accuracies[cell.block][bilstm.DEPTHS.index(cell.depth)] + NOISE[(cell.seed - BILSTM.version.seen) % 3]

    def metrics(cell: Cell) -> dict[str, float]:
        scalars = {"final_loss": 0.5, "rate": cell.recipe["rate"], "step_seconds": 0.1}
        return scalars if diverged else scalars | {"test_accuracy": accuracy(cell), "train_accuracy": 0.9}

    rows = []
    for number, (cell, scalars) in enumerate(conftest.followed(BILSTM, Request(seeds=seeds), metrics).items()):
        own = cell.columns() | {
            "time_utc": "2026-01-01",
            "machine": "m",
            "digest": str(number),
            "params": 1_000,
            "status": "diverged" if diverged and cell.trial is None else "ok",
        }
        rows += [row(**own, metric=metric, value=one) for metric, one in scalars.items()]
        if cell.trial is None:
            by_epoch = {epoch: accuracy(cell) - 0.01 * (3 - epoch) for epoch in (1, 2, 3)}
            rows += [
                row(**own, metric="epoch_test_accuracy", axis="epoch", value=value) | {"index": epoch}
                for epoch, value in by_epoch.items()
            ]
    return prepared(pd.DataFrame(rows))


def outcome(accuracies: Accuracies, *, seeds: int | None = None) -> Conclusion:
    return BILSTM.outcome(rows_of(accuracies, seeds=seeds), Request(seeds=seeds))


def verdicts(result: Conclusion) -> list[Verdict]:
    """The verdicts on one corpus. Both corpora have the same rows."""
    half = len(result.findings) // 2
    first, second = result.findings[:half], result.findings[half:]
    assert [one.verdict for one in first] == [one.verdict for one in second]
    return [one.verdict for one in first]


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
    assert verdicts(result) == [Verdict.REPRODUCED] * 4
    assert "10 layers, highway: 4.00 points" in result.findings[2].measured
    (table,), (picture,) = result.tables, result.pictures
    assert len(table.entries) == 2 * 12
    assert "plain" in picture.alt
    assert {one.claim.evidence for one in result.findings} == {Evidence.SECONDARY}


def test_a_single_seed_gives_no_interval_and_no_verdict() -> None:
    result = outcome(LIKE_THE_BLOG, seeds=1)
    assert set(verdicts(result)) == {Verdict.NOT_TESTABLE}
    assert "not above chance, or has fewer than 3 seeds" in result.findings[0].measured
    column = [head.text for head in result.tables[0].heads].index("test accuracy")
    assert all("[" not in entries[column] for entries in result.tables[0].entries)


def test_depth_that_costs_nothing_contradicts() -> None:
    assert verdicts(outcome(FLAT)) == [
        Verdict.REPRODUCED,
        Verdict.CONTRADICTED,
        Verdict.CONTRADICTED,
        Verdict.UNDECIDED,
    ]


def test_depth_that_helps_contradicts() -> None:
    better = FLAT | {"plain": [0.70, 0.76, 0.76, 0.76]}
    assert verdicts(outcome(better))[0] == Verdict.CONTRADICTED


def spread(rows: pd.DataFrame, depth: int, by: float) -> pd.DataFrame:
    """``rows`` with a larger spread over the seeds of one depth, and the same mean."""
    own = (rows["depth"] == depth) & (rows["metric"] == "test_accuracy")
    return rows.assign(value=rows["value"] + own * by * (1 - 2 * ((rows["seed"] - BILSTM.version.seen) % 2)))


def test_a_mean_with_a_wide_interval_decides_nothing() -> None:
    wide = verdicts(BILSTM.outcome(spread(rows_of(LIKE_THE_BLOG), 10, 0.4), Request()))
    assert {wide[0], *wide[2:]} == {Verdict.UNDECIDED}
    assert set(verdicts(BILSTM.outcome(spread(rows_of(FLAT), 10, 0.2), Request()))[:1]) == {Verdict.UNDECIDED}


@pytest.mark.parametrize(
    ("collapsed", "expected"),
    [(2, Verdict.CONTRADICTED), (3, Verdict.UNDECIDED), (8, Verdict.UNDECIDED), (9, Verdict.REPRODUCED)],
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
    assert verdicts(outcome(swapped))[3] == Verdict.CONTRADICTED


def test_nothing_is_decided_if_one_layer_has_not_learnt_or_seeds_are_few() -> None:
    nothing = {block: [CHANCE] * 4 for block in bilstm.BLOCKS}
    for result in (outcome(nothing), outcome(LIKE_THE_BLOG, seeds=2)):
        assert set(verdicts(result)) == {Verdict.NOT_TESTABLE}


def test_a_run_that_diverged_counts_with_chance_accuracy() -> None:
    result = BILSTM.outcome(rows_of(FLAT, diverged=True), Request())
    assert set(verdicts(result)) == {Verdict.NOT_TESTABLE}
    column = [head.text for head in result.tables[0].heads].index("diverged")
    assert {entries[column] for entries in result.tables[0].entries} == {"3", "11"}


def test_failed_runs_have_no_accuracy() -> None:
    rows = rows_of(FLAT).assign(status="timeout", value=float("nan"))
    result = BILSTM.outcome(rows, Request())
    assert set(verdicts(result)) == {Verdict.NOT_TESTABLE}
    assert list(result.pictures) == []


def test_the_claims_are_the_same_whatever_is_missing() -> None:
    rows, claims = rows_of(LIKE_THE_BLOG), [one.claim.statement for one in outcome(LIKE_THE_BLOG).findings]
    assert Verdict.REPRODUCED in {one.verdict for one in BILSTM.conclude(rows, Request()).findings}
    digests = sorted(set(rows["digest"]), key=int)
    parts = [rows[rows["digest"] != digest] for digest in digests[::200]]
    for part in (rows[:0], rows.assign(status="timeout", value=float("nan")), *parts):
        result = BILSTM.conclude(part, Request())
        assert [one.claim.statement for one in result.findings] == claims
        assert {one.verdict for one in result.findings} == {Verdict.NOT_TESTABLE}


def test_without_ten_layers_the_guess_is_not_judged() -> None:
    rows = rows_of(LIKE_THE_BLOG)
    result = BILSTM.outcome(rows[rows["depth"] < 10], Request(depth=(1, 2, 4)))
    assert verdicts(result)[1] == Verdict.NOT_TESTABLE
    assert "no run of 10 layers" in result.findings[1].measured

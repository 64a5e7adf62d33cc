"""BiLSTMs by depth: the protocol, and the verdicts for given accuracies."""

import math

import pytest

from highway_bench.data import make_dataset
from highway_bench.studies.reproduce import bilstm
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.request import Request
from tests.reproduce import conftest
from tests.reproduce.conftest import C, N, R, U, followed, rows_of

BILSTM = reproductions.get("bilstm")
FIRST = BILSTM.version.seen
CHANCE = 0.5
NOISE = (0.0, 0.004, -0.004)  # the same at every depth, so differences between depths do not have it
LIKE_THE_BLOG = {
    "plain": [0.76, 0.76, 0.74, 0.50],
    "highway": [0.76, 0.76, 0.75, 0.72],
    "residual": [0.76, 0.76, 0.76, 0.75],
}
FLAT = {block: [0.76] * 4 for block in bilstm.BLOCKS}


@pytest.fixture(autouse=True)
def chance(monkeypatch):
    """Replaces the chance of the corpora, whose data may be missing."""
    monkeypatch.setattr(bilstm, "chance_of", lambda corpus: CHANCE)


def rows_like(accuracies, *, seeds=None, loss=0.5):
    """Rows of both corpora and of the tuning runs: accuracies by block and depth, with small differences by seed."""

    def metrics(cell):
        accuracy = accuracies[cell.block][bilstm.DEPTHS.index(cell.depth)] + NOISE[(cell.seed - FIRST) % 3]
        return {
            "final_loss": loss,
            "rate": cell.recipe["rate"],
            "test_accuracy": accuracy if math.isfinite(loss) else loss,
            ("epoch_test_accuracy", "epoch", 1): accuracy - 0.01,
            ("epoch_test_accuracy", "epoch", 2): accuracy,
        }

    return rows_of(followed(BILSTM, Request(seeds=seeds), metrics), params=1_000)


def outcome(accuracies, **words):
    return BILSTM.outcome(rows_like(accuracies, **words), Request(seeds=words.get("seeds")))


def verdicts(result):
    """The verdicts on one corpus. Both corpora have the same rows."""
    first, second = (conftest.verdicts(result, corpus) for corpus in bilstm.CORPORA)
    assert first == second
    return first


def test_steps_are_whole_epochs(data_folder):
    for name, corpus in bilstm.CORPORA.items():
        train = make_dataset("sentiment", corpus=name).load().train
        assert corpus.steps_per_epoch == len(train.inputs) // bilstm.BATCH


def test_like_the_blog():
    result = outcome(LIKE_THE_BLOG)
    assert verdicts(result) == [R] * 4
    assert "highway: 4.00" in result.findings[2].measured
    (table,), (picture,) = result.tables, result.pictures
    assert len(table.entries) == 2 * 12
    assert "plain" in picture.alt


@pytest.mark.parametrize(
    ("accuracies", "words", "expected"),
    [
        (FLAT, {}, [R, C, C, U]),
        (FLAT | {"plain": [0.70, 0.76, 0.76, 0.76]}, {}, [C, C, C, C]),  # depth that helps
        ({**FLAT, "plain": LIKE_THE_BLOG["highway"], "highway": LIKE_THE_BLOG["plain"]}, {}, [R, C, R, C]),
        ({block: [CHANCE] * 4 for block in bilstm.BLOCKS}, {}, [N] * 4),  # one layer has not learnt
        (LIKE_THE_BLOG, {"seeds": 2}, [N] * 4),
    ],
)
def test_the_verdicts(accuracies, words, expected):
    assert verdicts(outcome(accuracies, **words)) == expected


@pytest.mark.parametrize(("accuracies", "by", "undecided"), [(LIKE_THE_BLOG, 0.4, (0, 2, 3)), (FLAT, 0.2, (0,))])
def test_a_mean_with_a_wide_interval_decides_nothing(accuracies, by, undecided):
    """The seeds of the deepest networks have a larger spread, and the same mean."""
    rows = rows_like(accuracies)
    deep = (rows["depth"] == 10) & (rows["metric"] == "test_accuracy")
    wide = rows.assign(value=rows["value"] + deep * by * (1 - 2 * ((rows["seed"] - FIRST) % 2)))
    found = verdicts(BILSTM.outcome(wide, Request()))
    assert {found[number] for number in undecided} == {U}


@pytest.mark.parametrize(("collapsed", "expected"), [(2, C), (3, U), (8, U), (9, R)])
def test_a_random_guess_is_counted_by_seed(collapsed, expected):
    """An accuracy is at chance or far above it, so the mean of 11 seeds says little: the rate at chance decides."""
    rows = rows_like(FLAT)
    below = (rows["block"] == "plain") & (rows["depth"] == 10) & (rows["metric"] == "test_accuracy")
    below &= rows["seed"] < FIRST + collapsed
    result = BILSTM.outcome(rows.assign(value=rows["value"].mask(below, CHANCE + 0.019)), Request())
    assert verdicts(result)[1] == expected
    assert result.findings[1].quantities[0].value == pytest.approx(100 * collapsed / 11)


def test_a_run_that_diverged_counts_with_chance_accuracy():
    result = outcome(FLAT, loss=math.inf)
    assert set(verdicts(result)) == {N}
    column = [head.text for head in result.tables[0].heads].index("diverged")
    assert {entries[column] for entries in result.tables[0].entries} == {"3", "11"}


def test_without_ten_layers_the_guess_is_not_judged():
    rows = rows_like(LIKE_THE_BLOG)
    result = BILSTM.outcome(rows[rows["depth"] < 10], Request(depth=(1, 2, 4)))
    assert verdicts(result)[1] == N

"""Sentiment: labels, split and vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from highway_bench.data import DataSet, make_dataset, sentiment
from highway_bench.data._texts import CORPORA

CACHED = (sentiment._texts, sentiment._vocabulary, sentiment._load)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forty made reviews: ten bad, thirty good; then one rated 0 and one whose words came before."""
    ratings = [(-1.5 if number < 10 else 0.2, f"Film number{number} is one") for number in range(40)]
    ratings += [(0.0, "so so"), (-2.0, "film NUMBER20 is one")]
    monkeypatch.setattr(sentiment, "read_ratings", lambda corpus: ratings)
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


@pytest.fixture(params=CORPORA)
def real(request: pytest.FixtureRequest) -> DataSet:
    dataset = make_dataset("sentiment", corpus=request.param)
    if absent := dataset.missing():
        pytest.skip(absent)
    return dataset


@pytest.mark.usefixtures("made")
def test_the_sign_of_the_rating_is_the_label() -> None:
    dataset = make_dataset("sentiment", length=5)
    train, test = dataset.load()
    assert torch.bincount(train.targets).tolist() == [8, 24]
    assert torch.bincount(test.targets).tolist() == [2, 6]
    assert dataset.chance_accuracy == 0.75
    assert dataset.chance_loss == pytest.approx(-(0.25 * torch.tensor(0.25).log() + 0.75 * torch.tensor(0.75).log()))


@pytest.mark.usefixtures("made")
def test_the_vocabulary_knows_the_training_part_only() -> None:
    common = make_dataset("sentiment", length=5)
    assert common.vocabulary == 2 + 3  # film, is, one; every number occurs once
    train, test = common.load()
    for split in (train, test):
        assert (split.inputs[:, [0, 2, 3]] >= 2).all()
        assert (split.inputs[:, 1] == 1).all()
        assert (split.inputs[:, 4] == 0).all()
    every = make_dataset("sentiment", length=3, min_count=1)
    train, test = every.load()
    assert every.vocabulary == 2 + 3 + 32
    assert (train.inputs >= 2).all()
    assert (test.inputs[:, 1] == 1).all()
    assert train.inputs.shape[1] == 3


def test_shares_of_the_real_corpora(real: DataSet) -> None:
    train, test = real.load()
    items = {"movie-reviews": (8452, 2114), "tweets": (3308, 828)}[real.corpus]  # type: ignore[attr-defined]
    assert (len(train.targets), len(test.targets)) == items
    share = {"movie-reviews": 0.504, "tweets": 0.693}[real.corpus]  # type: ignore[attr-defined]
    assert real.chance_accuracy == pytest.approx(share, abs=0.001)


def test_padding_comes_after_the_words(real: DataSet) -> None:
    for split in real.load():
        padding = split.inputs == 0
        assert (padding[:, 1:] >= padding[:, :-1]).all()
        assert not padding[:, 0].any()

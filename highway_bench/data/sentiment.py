"""``sentiment``: is a sentence of a film review, or a tweet, positive or negative?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
import torch

from highway_bench.data._texts import CORPORA, Vocabulary, absent, fetch_corpora, find, read_ratings, tokenise
from highway_bench.data.base import (
    Data,
    DataSet,
    Split,
    check_count,
    commonest_share,
    label_entropy,
    register_dataset,
    stratified_rows,
)
from highway_bench.errors import BadInput

SPLIT_SEED = 2014
TEST_SHARE = 0.2

CorpusName = Literal["movie-reviews", "tweets"]


@register_dataset(
    "sentiment",
    summary="sentences of film reviews, or tweets, rated above or below 0 by 20 people",
    source="Hutto and Gilbert, ICWSM 2014 (the data of VADER, MIT licence)",
)
@dataclass(frozen=True)
class Sentiment(DataSet):
    """Film reviews or tweets with a binary label: 1 where the mean rating is above 0, 0 where it is below.

    Texts rated exactly 0 are left out (37 reviews, 4 tweets), and so are repeated texts (2 and 60): no text is in both
    parts. The rest is in a fixed stratified 80/20 split. 69 % of the tweets and 50 % of the reviews are positive: the
    accuracies of always predicting "positive".

    Words are lower-cased and entities unescaped (see ``tokenise``). The vocabulary is the words that occur
    ``min_count`` times or more in the training part; 0 is padding, after the words, and 1 any other word. ``length`` is
    the number of steps of every row: no review has more than 64 words, and the one tweet that has (78) is cut off.
    """

    input_kind = "tokens"
    target_kind = "class"
    outputs = 2
    padded: ClassVar[bool] = True

    corpus: CorpusName = "movie-reviews"
    length: int = 64
    min_count: int = 2

    def __post_init__(self) -> None:
        if self.corpus not in get_args(CorpusName):
            raise BadInput(f"corpus must be one of {', '.join(CORPORA)}, not {self.corpus!r}")
        check_count("length", self.length, least=1)
        check_count("min_count", self.min_count, least=1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def vocabulary(self) -> int:
        """Size of the training part's vocabulary. Reads the corpus."""
        return len(_vocabulary(self.corpus, self.min_count))

    @property
    def chance_loss(self) -> float:
        return label_entropy(np.bincount(_texts(self.corpus).train.labels))

    @property
    def chance_accuracy(self) -> float:
        train, test = _texts(self.corpus)
        return commonest_share(np.bincount(train.labels), np.bincount(test.labels))

    def missing(self) -> str | None:
        corpus = CORPORA[self.corpus]
        return None if find(corpus) else absent(corpus)

    def fetch(self) -> Path:
        return fetch_corpora()

    def load(self, *, seed: int = 0) -> Data:
        """The data in memory. Raises ``BadInput`` where the corpus is in no folder, or is not the one published."""
        return _load(self)


class Labelled(NamedTuple):
    """Tokenised texts and their labels."""

    texts: list[list[str]]
    labels: list[int]


class Parts(NamedTuple):
    """The training and the test part of a corpus."""

    train: Labelled
    test: Labelled


@cache
def _texts(corpus: CorpusName) -> Parts:
    labelled: dict[tuple[str, ...], int] = {}
    for rating, text in read_ratings(CORPORA[corpus]):
        if rating != 0:
            labelled.setdefault(tuple(tokenise(text)), int(rating > 0))
    texts, labels = [list(words) for words in labelled], list(labelled.values())
    train, test = (
        Labelled([texts[row] for row in rows], [labels[row] for row in rows])
        for rows in stratified_rows(np.array(labels), test=TEST_SHARE, seed=SPLIT_SEED)
    )
    return Parts(train, test)


@cache
def _vocabulary(corpus: CorpusName, min_count: int) -> Vocabulary:
    return Vocabulary.of(_texts(corpus).train.texts, min_count=min_count)


@cache
def _load(options: Sentiment) -> Data:
    words = _vocabulary(options.corpus, options.min_count)
    train, test = (
        Split(words.encode(part.texts, length=options.length), torch.tensor(part.labels))
        for part in _texts(options.corpus)
    )
    return Data(train, test)

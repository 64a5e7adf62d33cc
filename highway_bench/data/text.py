"""``text``: any text classification set that Hugging Face's ``datasets`` library can load; an optional extra."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch

from highway_bench.data._files import library_missing, read_columns
from highway_bench.data._texts import Vocabulary, tokenise
from highway_bench.data.base import Data, DataSet, Split, check_count, commonest_share, label_entropy, register_dataset
from highway_bench.errors import BadInput


@register_dataset(
    "text",
    summary="any text classification set of Hugging Face's library (extra: text)",
    source="the set named by the option path, through Hugging Face datasets",
)
@dataclass(frozen=True)
class Text(DataSet):
    """Text classification: ``path`` names a set on the hub, or a folder with files that the library can read.

    ``config`` chooses one of several versions of a set. The columns ``text_column`` and ``label_column`` of the splits
    ``train_split`` and ``test_split`` are used. Classes are the labels of the training split in sorted order; labels
    may be numbers or words, but not both. Words, ``length`` and ``min_count`` are as in ``sentiment``: a text's words
    after the first ``length`` are cut off.

    Needs ``pip install highway-bench[text]``. ``outputs``, ``vocabulary`` and the chance scores are known only once the
    set is loaded, so they load it.
    """

    input_kind = "tokens"
    target_kind = "class"
    padded: ClassVar[bool] = True

    path: str
    config: str | None = None
    text_column: str = "text"
    label_column: str = "label"
    train_split: str = "train"
    test_split: str = "test"
    length: int = 256
    min_count: int = 2

    def __post_init__(self) -> None:
        if not self.path or not isinstance(self.path, str):
            raise BadInput("path must name a data set on the Hugging Face hub or a folder")
        check_count("length", self.length, least=1)
        check_count("min_count", self.min_count, least=1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def outputs(self) -> int:
        return _load(self).classes

    @property
    def vocabulary(self) -> int:
        return _load(self).vocabulary

    @property
    def chance_loss(self) -> float:
        return label_entropy(np.bincount(self.load().train.targets))

    @property
    def chance_accuracy(self) -> float:
        train, test = self.load()
        return commonest_share(*(np.bincount(part.targets, minlength=self.outputs) for part in (train, test)))

    @property
    def is_users(self) -> bool:
        return Path(self.path).exists()

    def missing(self) -> str | None:
        return library_missing()

    def load(self, *, seed: int = 0) -> Data:
        """The data in memory. Raises ``BadInput`` where the library, the set, a split, column or label is missing."""
        return _load(self).data


class Loaded(NamedTuple):
    """The data, the number of classes, and the size of the vocabulary."""

    data: Data
    classes: int
    vocabulary: int


@cache
def _load(options: Text) -> Loaded:
    train_texts, train_labels = _columns(options, options.train_split)
    test_texts, test_labels = _columns(options, options.test_split)
    try:
        numbers = {label: number for number, label in enumerate(sorted(set(train_labels)))}
    except TypeError:
        raise BadInput(f"text {options.path!r}: the labels in {options.label_column!r} are of several types") from None
    unknown = set(test_labels) - numbers.keys()
    if unknown:
        raise BadInput(
            f"text {options.path!r}: split {options.test_split!r} has labels that {options.train_split!r} "
            f"does not have: {', '.join(sorted(map(repr, unknown)))}; splits without labels cannot be used"
        )
    words = Vocabulary.of(train_texts, min_count=options.min_count)
    train, test = (
        Split(words.encode(texts, length=options.length), torch.tensor([numbers[label] for label in labels]))
        for texts, labels in ((train_texts, train_labels), (test_texts, test_labels))
    )
    return Loaded(Data(train, test), len(numbers), len(words))


def _columns(options: Text, split: str) -> tuple[list[list[str]], list[Any]]:
    """One split's tokenised texts and its labels."""
    texts, labels = read_columns(
        "text", options.path, options.config, split, (options.text_column, options.label_column)
    )
    return [tokenise(text) for text in texts], labels

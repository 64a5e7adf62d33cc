"""Words: text to token ids. The vocabulary comes from the training texts only."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from highway_bench.data.base import PADDING

UNKNOWN = 1  # a word that is not in the vocabulary
WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")


def tokenise(text: str) -> list[str]:
    """Lower-case words, and every other visible character as a token of its own.

    HTML entities are unescaped first. A word is a run of letters, digits and underscores, and may contain apostrophes
    (``don't``): "I don't &lt;3 it!" gives i, don't, <, 3, it, !.
    """
    return WORD.findall(html.unescape(text).lower())


@dataclass(frozen=True)
class Vocabulary:
    """Token ids by word, from 2 up; below are ``PADDING`` and ``UNKNOWN``."""

    ids: dict[str, int]

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]], *, min_count: int) -> Vocabulary:
        """The words that occur ``min_count`` times or more in tokenised ``texts``, the commonest first."""
        counts = Counter(word for words in texts for word in words)
        frequent = sorted(
            (word for word, count in counts.items() if count >= min_count), key=lambda word: (-counts[word], word)
        )
        return cls({word: number for number, word in enumerate(frequent, start=UNKNOWN + 1)})

    def __len__(self) -> int:
        """Number of ids, padding and unknown included."""
        return len(self.ids) + UNKNOWN + 1

    def encode(self, texts: Sequence[Sequence[str]], *, length: int) -> Tensor:
        """Token ids int64 (texts, ``length``): words after the first ``length`` are cut off, short texts padded."""
        rows = torch.full((len(texts), length), PADDING, dtype=torch.int64)
        for row, words in zip(rows, texts, strict=True):
            ids = [self.ids.get(word, UNKNOWN) for word in words[:length]]
            row[: len(ids)] = torch.tensor(ids, dtype=torch.int64)
        return rows

"""Next byte: what data sets share whose targets are the bytes of a text."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from highway_bench.data._labels import commonest_share, label_entropy
from highway_bench.data._ngrams import BYTES, witten_bell_loss
from highway_bench.data._text_source import TextParts
from highway_bench.data.base import Data, DataSet, Split, check_count
from highway_bench.errors import BadInput

REFERENCE_ORDER = 3  # of the n-gram that a run must reach


@dataclass(frozen=True)
class NextByte(DataSet):
    """The base of data sets of a text: the input of a step is a byte of it, its target is the next byte.

    A token is a byte plus 1: 0, which is padding elsewhere, does not occur. A row has ``length`` inputs, and its last
    target is the first input of the next row. So every byte of a part but its first one is a target once, except that
    an incomplete last row is left out. An epoch has every row once, in random order.

    A run succeeds at the held-out loss of a byte trigram (``witten_bell_loss``) that is fitted on the training part.
    """

    causal: ClassVar[bool] = True
    byte_targets: ClassVar[bool] = True
    called: ClassVar[str]
    """Its name in messages."""

    length: int = 64

    def __post_init__(self) -> None:
        check_count("length", self.length, least=1)

    @property
    @abstractmethod
    def parts(self) -> TextParts:
        """The training part and the held-out part of the text."""

    @property
    def input_kind(self) -> Literal["tokens"]:
        return "tokens"

    @property
    def target_kind(self) -> Literal["token"]:
        return "token"

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def outputs(self) -> int:
        return BYTES + 1

    @property
    def vocabulary(self) -> int:
        return BYTES + 1

    @property
    def chance_loss(self) -> float:
        """Entropy in nat of the training part's bytes: the loss of the same prediction at every step."""
        return label_entropy(byte_counts(self.parts.train))

    @property
    def chance_accuracy(self) -> float:
        return commonest_share(*map(byte_counts, self.parts))

    @property
    def reference_loss(self) -> float:
        return _reference_loss(self.parts)

    def load(self, *, seed: int = 0) -> Data:
        """The data in memory. Raises ``BadInput`` where the text is missing, is not text, or has no row in a part."""
        data = _rows_of_parts(self.parts, self.length)
        for name, part, split in zip(("training", "held-out"), self.parts, data, strict=True):
            if not len(split.inputs):
                raise BadInput(
                    f"{self.called}: the text is too short, its {name} part has {len(part):,} bytes and a row needs "
                    f"{self.length + 1:,}"
                )
        return data


def byte_counts(text: bytes) -> NDArray[np.int64]:
    """How often each byte occurs in ``text``, (256,)."""
    return np.bincount(np.frombuffer(text, np.uint8), minlength=BYTES)


def rows_of(text: bytes, length: int) -> Split:
    """Inputs and targets (rows, ``length``) of ``text``: two views of one tensor."""
    tokens = torch.from_numpy(np.frombuffer(text, np.uint8).astype(np.int64) + 1)
    rows = max(len(tokens) - 1, 0) // length
    used = rows * length
    return Split(tokens[:used].view(rows, length), tokens[1 : used + 1].view(rows, length))


@cache
def _reference_loss(parts: TextParts) -> float:
    return witten_bell_loss(*parts, REFERENCE_ORDER)


@cache
def _rows_of_parts(parts: TextParts, length: int) -> Data:
    return Data(*(rows_of(part, length) for part in parts))

"""Next byte: what data sets share whose targets are the bytes of a text, and the n-gram model that a run must reach."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from highway_bench.data._texts import TextParts
from highway_bench.data.base import Data, DataSet, Split, check_count, commonest_share, label_entropy
from highway_bench.errors import BadInput

BYTES = 256
HIGHEST_ORDER = 7  # the number of an n-gram, n bytes to the base 256, is an int64
Codes = NDArray[np.int64]
REFERENCE_ORDER = 3  # of the n-gram that a run must reach


def witten_bell_loss(train: bytes, test: bytes, order: int) -> float:
    """Mean loss in nat per byte of ``test`` under the byte n-gram of this ``order``, fitted on ``train``.

    For a byte w after the n − 1 bytes h, where h′ is h without its first byte, c(h, w) counts how often w follows h in
    ``train``, c(h) is its sum over w, and t(h) the number of different w:

        p(w | h) = (c(h, w) + t(h) · p(w | h′)) / (c(h) + t(h)),  and p(w | h) = p(w | h′) where c(h) is 0.

    Below order 1, p is 1/256. The first bytes of ``test`` have shorter h. Neither text may be empty. Source: Witten and
    Bell 1991, method C, interpolated as by Chen and Goodman (1998, §2.4).
    """
    assert 1 <= order <= HIGHEST_ORDER
    fitted, held_out = (np.frombuffer(text, np.uint8).astype(np.int64) for text in (train, test))
    chances = np.full(len(held_out), 1 / BYTES)
    for n in range(1, min(order, len(held_out)) + 1):
        # ``chances[n - 1 :]`` are those of the bytes with n − 1 bytes before them; the others keep shorter h.
        grams, counts = np.unique(codes(fitted, n), return_counts=True)
        contexts, first, kinds = np.unique(grams // BYTES, return_index=True, return_counts=True)
        totals = np.add.reduceat(counts, first) if len(counts) else counts
        wanted = codes(held_out, n)
        seen = counts_of(wanted, grams, counts)
        total, kind = (counts_of(wanted // BYTES, contexts, values) for values in (totals, kinds))
        shorter = chances[n - 1 :]
        chances[n - 1 :] = np.where(total > 0, (seen + kind * shorter) / np.maximum(total + kind, 1), shorter)
    return float(-np.log(chances).mean())


def codes(text: Codes, n: int) -> Codes:
    """The number of every n-gram of ``text``: its bytes as digits to the base 256, the first byte the highest."""
    grams = np.zeros(max(len(text) - n + 1, 0), np.int64)
    for offset in range(n):
        grams = grams * BYTES + text[offset : offset + len(grams)]
    return grams


def counts_of(wanted: Codes, known: Codes, counts: Codes) -> Codes:
    """The count of each of ``wanted``, by the sorted ``known`` ones with their ``counts``; 0 for others."""
    if not len(known):
        return np.zeros_like(wanted)
    index = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[index] == wanted, counts[index], 0)


@dataclass(frozen=True)
class NextByte(DataSet):
    """The base of data sets of a text: the input of a step is a byte of it, its target is the next byte.

    A token is a byte plus 1: 0, which is padding elsewhere, does not occur. A row has ``length`` inputs, and its last
    target is the first input of the next row. So every byte of a part but its first one is a target once, except that
    an incomplete last row is left out. An epoch has every row once, in random order.

    A run succeeds at the held-out loss of a byte trigram (``witten_bell_loss``) that is fitted on the training part.
    """

    input_kind = "tokens"
    target_kind = "token"
    outputs = BYTES + 1
    vocabulary = BYTES + 1
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
    def input_shape(self) -> tuple[int, ...]:
        return (self.length,)

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

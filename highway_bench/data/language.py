"""``language``: predict each byte of a text from the bytes before it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from highway_bench.data._hub import library_missing
from highway_bench.data._labels import commonest_share, label_entropy
from highway_bench.data._ngrams import BYTES, witten_bell_loss
from highway_bench.data._text_source import REVIEWS, TextSource, text_parts
from highway_bench.data._vader import absent, fetch_corpora, find
from highway_bench.data.base import Data, DataSet, Split, check_count, register_dataset
from highway_bench.errors import BadInput

REFERENCE_ORDER = 3  # of the n-gram that a run must reach


@register_dataset(
    "language",
    summary="the next byte of a text: film reviews, text files, or a set of Hugging Face's library",
    source="the reviews of Hutto and Gilbert, ICWSM 2014; or the text that the option path or hub names",
)
@dataclass(frozen=True)
class Language(DataSet):
    """Causal language modelling of bytes: the input of a step is a byte of a text, its target is the next byte.

    The text is one of these:

    - by default, every film review of ``sentiment``, rated or not, in the file's order;
    - ``path``: a text file in UTF-8, or all files of a folder and its folders, in the order of their paths and without
      hidden ones;
    - ``hub``: the column ``text_column`` of the split ``train_split`` of a set on the Hugging Face hub, in the version
      ``config``. It needs ``pip install highway-bench[text]``.

    Repeated texts and empty ones are left out, and a newline joins the others. The last tenth of the bytes is held out,
    at most 131,072 of them. If a line (of the reviews: a review) starts in the first half of these, the cut is there.

    A token is a byte plus 1: 0, which is padding elsewhere, does not occur. A row has ``length`` inputs, and its last
    target is the first input of the next row. So every byte of a part but its first one is a target once, except that
    an incomplete last row is left out. An epoch has every row once, in random order.

    A run succeeds at the held-out loss of a byte trigram (``witten_bell_loss``) that is fitted on the training part.
    The reviews have 2.93 bits per byte.
    """

    causal: ClassVar[bool] = True
    byte_targets: ClassVar[bool] = True

    length: int = 64
    path: str | None = None
    hub: str | None = None
    config: str | None = None
    text_column: str = "text"
    train_split: str = "train"

    def __post_init__(self) -> None:
        check_count("length", self.length, least=1)
        for option in ("path", "hub"):
            value = getattr(self, option)
            if value is not None and (not isinstance(value, str) or not value):
                raise BadInput(f"{option} must name a text, not {value!r}")
        if self.path is not None and self.hub is not None:
            raise BadInput("language takes its text from a path or from a hub, not from both")

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
        return label_entropy(byte_counts(text_parts(self.source).train))

    @property
    def chance_accuracy(self) -> float:
        return commonest_share(*map(byte_counts, text_parts(self.source)))

    @property
    def reference_loss(self) -> float:
        return _reference_loss(self.source)

    @property
    def source(self) -> TextSource:
        """Where the text comes from."""
        return TextSource(self.path, self.hub, self.config, self.text_column, self.train_split)

    def missing(self) -> str | None:
        if self.hub is not None:
            return library_missing()
        return absent(REVIEWS) if self.path is None and find(REVIEWS) is None else None

    def fetch(self) -> Path:
        return super().fetch() if self.hub is not None else fetch_corpora()

    def load(self, *, seed: int = 0) -> Data:
        """The data in memory. Raises ``BadInput`` where the text is missing, is not text, or has no row in a part."""
        return _load(self)


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
def _reference_loss(source: TextSource) -> float:
    return witten_bell_loss(*text_parts(source), REFERENCE_ORDER)


@cache
def _load(options: Language) -> Data:
    parts = text_parts(options.source)
    data = Data(*(rows_of(part, options.length) for part in parts))
    for name, part, split in zip(("training", "held-out"), parts, data, strict=True):
        if not len(split.inputs):
            raise BadInput(
                f"language: the text is too short, its {name} part has {len(part):,} bytes and a row needs "
                f"{options.length + 1:,}"
            )
    return data

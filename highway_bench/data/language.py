"""``language``: predict each byte of a text from the bytes before it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from highway_bench.data._files import library_missing
from highway_bench.data._next_byte import NextByte
from highway_bench.data._texts import REVIEWS, TextParts, TextSource, absent, fetch_corpora, find, text_parts
from highway_bench.data.base import register_dataset
from highway_bench.errors import BadInput


@register_dataset(
    "language",
    summary="the next byte of a text: film reviews, text files, or a set of Hugging Face's library",
    source="the reviews of Hutto and Gilbert, ICWSM 2014; or the text that the option path or hub names",
)
@dataclass(frozen=True)
class Language(NextByte):
    """Causal language modelling of bytes: the input of a step is a byte of a text, its target is the next byte.

    The text is one of these:

    - by default, every film review of ``sentiment``, rated or not, in the file's order;
    - ``path``: a text file in UTF-8, or all files of a folder and its folders, in the order of their paths and without
      hidden ones;
    - ``hub``: the column ``text_column`` of the split ``train_split`` of a set on the Hugging Face hub, in the version
      ``config``. It needs ``pip install highway-bench[text]``.

    Repeated texts and empty ones are left out, and a newline joins the others. The last tenth of the bytes is held out,
    at most 131,072 of them. If a line (of the reviews: a review) starts in the first half of these, the cut is there.

    Rows of ``length`` inputs, and the trigram at whose held-out loss a run succeeds, are those of ``NextByte``. The
    reviews have 2.93 bits per byte.
    """

    called: ClassVar[str] = "language"

    path: str | None = None
    hub: str | None = None
    config: str | None = None
    text_column: str = "text"
    train_split: str = "train"

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("path", "hub"):
            value = getattr(self, option)
            if value is not None and (not isinstance(value, str) or not value):
                raise BadInput(f"{option} must name a text, not {value!r}")
        if self.path is not None and self.hub is not None:
            raise BadInput("language takes its text from a path or from a hub, not from both")

    @property
    def source(self) -> TextSource:
        """Where the text comes from."""
        return TextSource.of(self.path, self.hub, self.config, self.text_column, self.train_split)

    @property
    def is_users(self) -> bool:
        return self.path is not None

    @property
    def parts(self) -> TextParts:
        return text_parts(self.source)

    def missing(self) -> str | None:
        if self.hub is not None:
            return library_missing()
        return absent(REVIEWS) if self.path is None and find(REVIEWS) is None else None

    def fetch(self) -> Path:
        return super().fetch() if self.hub is not None else fetch_corpora()

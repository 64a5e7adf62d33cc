"""Where a text comes from, and how it is cut into a training part and a held-out part."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from highway_bench.data._files import contents_of
from highway_bench.data._hub import read_columns
from highway_bench.data._vader import CORPORA, read_ratings
from highway_bench.errors import BadInput

REVIEWS = CORPORA["movie-reviews"]
TEST_SHARE = 10  # the last tenth of the text is held out,
MOST_TEST_BYTES = 131_072  # or its last 128 KiB, if that is less: a network is tested on all of it


class TextSource(NamedTuple):
    """The options of ``language`` that name a text; all film reviews where ``path`` and ``hub`` are ``None``.

    ``state`` has the times and sizes of the files at ``path``: where they change, the text is read again.
    """

    path: str | None
    hub: str | None
    config: str | None
    column: str
    split: str
    state: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, path: str | None, *options: Any) -> TextSource:
        """The source with its ``state``."""
        files = [] if path is None else files_at(Path(path).expanduser())
        state = tuple((stat.st_mtime_ns, stat.st_size) for stat in map(Path.stat, files))
        return cls(path, *options)._replace(state=state)

    def texts(self) -> list[str]:
        """The texts in order, as they are published."""
        if self.path is not None:
            return file_texts(Path(self.path).expanduser())
        if self.hub is not None:
            return read_columns("language", self.hub, self.config, self.split, (self.column,))[0]
        return [text for _, text in read_ratings(REVIEWS)]


class TextParts(NamedTuple):
    """The training part and the held-out part of a text."""

    train: bytes
    test: bytes


def split_text(text: bytes) -> TextParts:
    """``text`` without its last tenth, or its last ``MOST_TEST_BYTES`` if these are fewer; and that end.

    If a line starts in the first half of the end, the cut is there.
    """
    size = min(len(text) // TEST_SHARE, MOST_TEST_BYTES)
    first = len(text) - size
    cut = text.find(b"\n", first - 1, len(text) - size // 2) + 1 or first
    return TextParts(text[:cut], text[cut:])


@cache
def text_parts(source: TextSource) -> TextParts:
    """Both parts of the text: its texts without repeated and empty ones, joined by newlines, in UTF-8."""
    texts = filter(None, dict.fromkeys(source.texts()))
    return split_text("\n".join(texts).encode("utf-8", "replace"))  # a lone surrogate has no code in UTF-8


def file_texts(path: Path) -> list[str]:
    """The text of a file, or of every file in a folder. Raises ``BadInput``, which names the file, for one that cannot
    be read or is not UTF-8."""
    return [read_text(file) for file in files_at(path)]


def files_at(path: Path) -> list[Path]:
    """The file at ``path``, or all in a folder and its folders in the order of their paths, without hidden ones.

    Raises ``BadInput`` where there is none, and for what can be read once only.
    """
    if not os.path.exists(path):  # false for a name that is too long, where Path.exists raises
        raise BadInput(f"{path}: there is no such file or folder")
    if not (path.is_file() or path.is_dir()):
        raise BadInput(f"{path}: neither a file nor a folder, so it is read once only: save it to a file first")
    if path.is_file():
        return [path]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    if not files:
        raise BadInput(f"{path}: the folder has no files")
    return files


def read_text(file: Path) -> str:
    """The text of a file in UTF-8, plain or gzip; raises ``BadInput`` for any other file."""
    contents = contents_of(file)
    try:
        return contents.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not text in UTF-8, byte {contents[error.start]:#04x} at {error.start:,}") from None

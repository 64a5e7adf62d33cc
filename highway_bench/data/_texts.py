"""Texts: where they come from, how one is cut into a training part and a held-out part, and words as token ids.

The rated corpora are the two of VADER (Hutto and Gilbert, ICWSM 2014). A vocabulary comes from the training texts only.
"""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from highway_bench.data._files import cache_folder, contents_of, find_folder, how_to_give, read_columns
from highway_bench.data.base import PADDING
from highway_bench.errors import BadInput

UNKNOWN = 1  # a word that is not in the vocabulary
WORD = re.compile(r"\w+(?:'\w+)*|[^\w\s]")
PACKAGE = "vaderSentiment==0.5"
PACKAGE_SHA256 = "5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a"
ARCHIVE = "additional_resources/hutto_ICWSM_2014.tar.gz"
TIMEOUT = 300  # seconds for pip; the package has 2.4 MB
TEST_SHARE = 10  # the last tenth of the text is held out,
MOST_TEST_BYTES = 131_072  # or its last 128 KiB, if that is less: a network is tested on all of it


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


@dataclass(frozen=True)
class Corpus:
    """A corpus as published: the file's name here and in the archive, its rows, bytes and SHA-256."""

    file: str
    member: str
    rows: int
    size: int
    sha256: str


CORPORA: Mapping[str, Corpus] = {
    "movie-reviews": Corpus(
        "movie-reviews.tsv",
        "movieReviewSnippets_GroundTruth.txt",
        10_605,
        1_383_098,
        "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
    ),
    "tweets": Corpus(
        "tweets.tsv",
        "tweets_GroundTruth.txt",
        4_200,
        389_886,
        "dfbe7102e2f92579ed8b19df9a3822491880697c67adf712fb66e520cc05102f",
    ),
}


def find(corpus: Corpus) -> Path | None:
    """The corpus's file: in ``sentiment`` of the data folder, in the data folder itself, or in the cache."""
    folder = find_folder("sentiment", [corpus.file])
    return folder / corpus.file if folder else None


def absent(corpus: Corpus) -> str:
    """The message that says how to obtain a corpus that is in no folder."""
    return f"{corpus.file} is in no folder; run 'highway-bench fetch sentiment', or {how_to_give('sentiment', 'it')}"


def read_ratings(corpus: Corpus) -> list[tuple[float, str]]:
    """Every row's mean rating (−4 to 4) and text, in the file's order.

    A file has three columns (number, rating, text), separated by tabs, without quoting or a header, in UTF-8 with CRLF.
    Raises ``BadInput`` where it is in no folder, cannot be read or is not the one published.
    """
    path = find(corpus)
    if path is None:
        raise BadInput(absent(corpus))
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
    check(contents, corpus, str(path))
    rows = [line.split("\t") for line in contents.decode("utf-8").split("\r\n")]
    return [(float(rating), text) for _, rating, text in rows]


def check(contents: bytes, corpus: Corpus, source: str) -> None:
    """Raise ``BadInput`` unless ``contents`` are the published ones; ``source`` names them in the message."""
    actual = hashlib.sha256(contents).hexdigest()
    if actual == corpus.sha256:
        return
    if hashlib.sha256(contents.replace(b"\n", b"\r\n")).hexdigest() == corpus.sha256:
        raise BadInput(f"{source}: its line endings were changed, CRLF is expected as in the published file")
    if len(contents) != corpus.size:
        rows = len(contents.splitlines())
        fault = "truncated" if len(contents) < corpus.size else "too long"
        raise BadInput(
            f"{source}: {fault}, {len(contents):,} bytes and {rows:,} rows instead of {corpus.size:,} and "
            f"{corpus.rows:,}"
        )
    raise BadInput(f"{source}: wrong or damaged file, its SHA-256 is {actual} and not {corpus.sha256}")


def fetch_corpora(folder: Path | None = None) -> Path:
    """Download both corpora with pip into ``folder`` and return it; by default, ``sentiment`` in the cache folder.

    They are part of the source distribution of vaderSentiment 0.5, which pip takes from its configured index. pip
    checks the distribution's SHA-256 before it runs any of its code, and each file is checked again here. Existing
    files are replaced only by checked ones. Raises ``BadInput`` where pip fails or the files are not the published
    ones.
    """
    folder = cache_folder() / "sentiment" if folder is None else folder.absolute()
    with tempfile.TemporaryDirectory() as temporary:
        unpack(_download(Path(temporary)), folder)
    return folder


def unpack(distribution: Path, folder: Path) -> None:
    """Write both corpora out of vaderSentiment's source distribution into ``folder``."""
    packed = distribution.read_bytes()
    actual = hashlib.sha256(packed).hexdigest()
    if actual != PACKAGE_SHA256:
        raise BadInput(
            f"{distribution.name}: not the expected distribution, its SHA-256 is {actual} and not {PACKAGE_SHA256}"
        )
    with zipfile.ZipFile(io.BytesIO(packed)) as outer:
        name = next(name for name in outer.namelist() if name.endswith(ARCHIVE))
        archive = outer.read(name)
    with tarfile.open(fileobj=io.BytesIO(archive)) as inner:
        members = {Path(member.name).name: member for member in inner if member.isfile()}
        texts = {}
        for corpus in CORPORA.values():
            stream = inner.extractfile(members[corpus.member])
            assert stream is not None  # it is a file, see above
            texts[corpus] = stream.read()
    for corpus, contents in texts.items():
        check(contents, corpus, f"{corpus.member} in {distribution.name}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for corpus, contents in texts.items():
            partial = folder / f"{corpus.file}.part"
            partial.write_bytes(contents)
            os.replace(partial, folder / corpus.file)
    except OSError as error:
        raise BadInput(f"{folder}: cannot be written ({error.strerror})") from None


def _download(folder: Path) -> Path:
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{PACKAGE} --hash=sha256:{PACKAGE_SHA256}\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        ":all:",
        "--dest",
        str(folder),
        "--requirement",
        str(requirement),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise BadInput(f"pip did not fetch {PACKAGE} within {TIMEOUT} s") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        reason = next((line for line in lines if line.startswith("ERROR:")), lines[-1] if lines else "no message")
        raise BadInput(f"pip could not fetch {PACKAGE}: {reason.removeprefix('ERROR: ')}") from None
    return next(folder.glob("*.zip"))


REVIEWS = CORPORA["movie-reviews"]


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

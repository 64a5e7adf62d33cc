"""The two rated corpora: damaged files, and fetching them with a pip that is not there."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from highway_bench.data import _texts as _vader
from highway_bench.data._texts import CORPORA, Corpus, fetch_corpora, read_ratings
from highway_bench.errors import BadInput

TEXTS = {
    "movie-reviews": b"1\t2.5\tGood film\r\n2\t-1.5\tBad film",
    "tweets": "1\t0.25\tNice £5\r\n2\t-3\t&lt;sigh&gt;".encode(),
}


@pytest.fixture
def corpora(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Corpus]:
    """Two small corpora that stand in for the published ones; nothing is in the cache."""
    small = {
        name: dataclasses.replace(CORPORA[name], rows=2, size=len(text), sha256=hashlib.sha256(text).hexdigest())
        for name, text in TEXTS.items()
    }
    monkeypatch.setattr(_vader, "CORPORA", small)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    return small


@pytest.fixture
def distribution(corpora: dict[str, Corpus], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A source distribution of these corpora, built as the published one is."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        for name, corpus in corpora.items():
            member = tarfile.TarInfo(f"hutto_ICWSM_2014/{corpus.member}")
            member.size = len(TEXTS[name])
            archive.addfile(member, io.BytesIO(TEXTS[name]))
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr(f"vaderSentiment-0.5/{_vader.ARCHIVE}", inner.getvalue())
    monkeypatch.setattr(_vader, "PACKAGE_SHA256", hashlib.sha256(outer.getvalue()).hexdigest())
    return outer.getvalue()


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Make pip deliver these bytes."""

    def deliver(contents: bytes) -> None:
        def run(command: list[str], **_: Any) -> None:
            assert command[1:4] == ["-m", "pip", "download"]
            assert command[command.index("--no-binary") + 1] == ":all:"
            requirement = Path(command[command.index("--requirement") + 1]).read_text()
            assert requirement == f"vaderSentiment==0.5 --hash=sha256:{_vader.PACKAGE_SHA256}\n"
            (Path(command[command.index("--dest") + 1]) / "vaderSentiment-0.5.zip").write_bytes(contents)

        monkeypatch.setattr(subprocess, "run", run)

    return deliver


def test_fetched_files_are_the_published_ones_and_are_found(
    corpora: dict[str, Corpus], distribution: bytes, pip: Callable[[bytes], None], tmp_path: Path
) -> None:
    pip(distribution)
    folder = fetch_corpora()
    assert folder == tmp_path / "cache" / "highway_bench" / "sentiment"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        corpus.file: TEXTS[name] for name, corpus in corpora.items()
    }
    assert read_ratings(corpora["movie-reviews"]) == [(2.5, "Good film"), (-1.5, "Bad film")]
    assert read_ratings(corpora["tweets"]) == [(0.25, "Nice £5"), (-3.0, "&lt;sigh&gt;")]


def test_another_distribution_is_refused(distribution: bytes, pip: Callable[[bytes], None], tmp_path: Path) -> None:
    pip(distribution[:-1])
    with pytest.raises(BadInput, match="SHA-256"):
        fetch_corpora(tmp_path / "here")
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (subprocess.CalledProcessError(1, "pip", stderr="x\nERROR: No matching distribution\ny"), "No matching"),
        (subprocess.TimeoutExpired("pip", 300), "300 s"),
    ],
)
def test_a_pip_that_fails(error: Exception, fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(BadInput, match=fault):
        fetch_corpora(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda text: text[:-5], "truncated"),
        (lambda text: text.replace(b"\r\n", b"\n"), "line endings"),
        (lambda text: text.replace(b"B", b"G"), "SHA-256"),
        (lambda text: b"\xff" * len(text), "damaged"),
    ],
)
def test_a_damaged_file_is_named(
    damage: Callable[[bytes], bytes],
    fault: str,
    corpora: dict[str, Corpus],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(tmp_path))
    (tmp_path / "movie-reviews.tsv").write_bytes(damage(TEXTS["movie-reviews"]))
    with pytest.raises(BadInput, match=rf"movie-reviews\.tsv: .*{fault}"):
        read_ratings(corpora["movie-reviews"])


@pytest.mark.parametrize(("name", "above", "below"), [("movie-reviews", 5242, 5326), ("tweets", 2897, 1299)])
def test_the_real_files(name: str, above: int, below: int, data_folder: Path) -> None:
    if _vader.find(CORPORA[name]) is None:
        pytest.skip("HIGHWAY_BENCH_DATA has no folder sentiment")
    rows = read_ratings(CORPORA[name])
    assert len(rows) == CORPORA[name].rows
    assert sum(rating > 0 for rating, _ in rows) == above
    assert sum(rating < 0 for rating, _ in rows) == below
    assert all(-4 <= rating <= 4 and text.strip() for rating, text in rows)

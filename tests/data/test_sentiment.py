"""The two rated corpora: fetched and damaged files, words, labels and split."""

import dataclasses
import hashlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch

from highway_bench.data import _texts as _texts
from highway_bench.data import make_dataset, sentiment
from highway_bench.data._texts import CORPORA, UNKNOWN, Vocabulary, fetch_corpora, read_ratings, tokenise
from highway_bench.data.base import PADDING
from highway_bench.errors import BadInput

TEXTS = {
    "movie-reviews": b"1\t2.5\tGood film\r\n2\t-1.5\tBad film",
    "tweets": "1\t0.25\tNice £5\r\n2\t-3\t&lt;sigh&gt;".encode(),
}


@pytest.fixture
def corpora(nowhere, monkeypatch):
    """Two small corpora that stand in for the published ones; nothing is in the cache."""
    small = {
        name: dataclasses.replace(CORPORA[name], rows=2, size=len(text), sha256=hashlib.sha256(text).hexdigest())
        for name, text in TEXTS.items()
    }
    monkeypatch.setattr(_texts, "CORPORA", small)
    return small


@pytest.fixture
def distribution(corpora, monkeypatch):
    """A source distribution of these corpora, built as the published one is."""
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as archive:
        for name, corpus in corpora.items():
            member = tarfile.TarInfo(f"hutto_ICWSM_2014/{corpus.member}")
            member.size = len(TEXTS[name])
            archive.addfile(member, io.BytesIO(TEXTS[name]))
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr(f"vaderSentiment-0.5/{_texts.ARCHIVE}", inner.getvalue())
    monkeypatch.setattr(_texts, "PACKAGE_SHA256", hashlib.sha256(outer.getvalue()).hexdigest())
    return outer.getvalue()


@pytest.fixture
def pip(monkeypatch):
    """Make pip deliver these bytes."""

    def deliver(contents):
        def run(command, **_):
            assert command[1:4] == ["-m", "pip", "download"]
            assert command[command.index("--no-binary") + 1] == ":all:"
            requirement = Path(command[command.index("--requirement") + 1]).read_text()
            assert requirement == f"vaderSentiment==0.5 --hash=sha256:{_texts.PACKAGE_SHA256}\n"
            (Path(command[command.index("--dest") + 1]) / "vaderSentiment-0.5.zip").write_bytes(contents)

        monkeypatch.setattr(subprocess, "run", run)

    return deliver


def test_fetched_files_are_the_published_ones_and_are_found(corpora, distribution, pip, nowhere):
    pip(distribution)
    folder = fetch_corpora()
    assert folder == nowhere / "sentiment"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        corpus.file: TEXTS[name] for name, corpus in corpora.items()
    }
    assert read_ratings(corpora["movie-reviews"]) == [(2.5, "Good film"), (-1.5, "Bad film")]
    assert read_ratings(corpora["tweets"]) == [(0.25, "Nice £5"), (-3.0, "&lt;sigh&gt;")]


def test_another_distribution_is_refused(distribution, pip, tmp_path):
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
def test_a_pip_that_fails(error, fault, monkeypatch, tmp_path):
    def run(*_, **__):
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
    damage,
    fault,
    corpora,
    monkeypatch,
    tmp_path,
):
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(tmp_path))
    (tmp_path / "movie-reviews.tsv").write_bytes(damage(TEXTS["movie-reviews"]))
    with pytest.raises(BadInput, match=rf"movie-reviews\.tsv: .*{fault}"):
        read_ratings(corpora["movie-reviews"])


@pytest.mark.parametrize(
    ("name", "above", "below", "items", "commonest"),
    [("movie-reviews", 5242, 5326, (8452, 2114), 0.504), ("tweets", 2897, 1299, (3308, 828), 0.693)],
)
def test_the_real_files(name, above, below, items, commonest):
    dataset = make_dataset("sentiment", corpus=name)
    if absent := dataset.missing():
        pytest.skip(absent)
    rows = read_ratings(CORPORA[name])
    assert len(rows) == CORPORA[name].rows
    assert (sum(rating > 0 for rating, _ in rows), sum(rating < 0 for rating, _ in rows)) == (above, below)
    assert all(-4 <= rating <= 4 and text.strip() for rating, text in rows)
    train, test = dataset.load()
    assert (len(train.targets), len(test.targets)) == items
    assert dataset.chance_accuracy == pytest.approx(commonest, abs=0.001)


# ------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't &lt;3 it!", ["i", "don't", "<", "3", "it", "!"]),
        ("Tom &amp; Jerry", ["tom", "&", "jerry"]),
        ("the ''new'' one", ["the", "'", "'", "new", "'", "'", "one"]),
        ("Amélie: £5, @anonymous #fb :D", ["amélie", ":", "£", "5", ",", "@", "anonymous", "#", "fb", ":", "d"]),
        ("", []),
        (" \t ", []),
    ],
)
def test_tokens(text, words):
    assert tokenise(text) == words


def test_ids_go_from_the_commonest_word_up():
    words = Vocabulary.of([["b", "a", "c"], ["b", "a"], ["d", "b"]], min_count=2)
    assert words.ids == {"b": 2, "a": 3}
    assert len(words) == 4
    assert Vocabulary.of([["b", "a"]], min_count=1).ids == {"a": 2, "b": 3}  # a tie goes by the alphabet


def test_short_texts_are_padded_and_long_ones_cut_off():
    words = Vocabulary.of([["b", "b", "a"]], min_count=1)
    ids = words.encode([["a"], ["b", "z", "a", "a"], []], length=3)
    assert ids.tolist() == [[3, PADDING, PADDING], [2, UNKNOWN, 3], [PADDING] * 3]


# -------------------------------------------------------------------------------------------------- labels and split

CACHED = (sentiment._texts, sentiment._vocabulary, sentiment._load)


@pytest.fixture
def made(monkeypatch):
    """Forty made reviews: ten bad, thirty good; then one rated 0 and one whose words came before."""
    ratings = [(-1.5 if number < 10 else 0.2, f"Film number{number} is one") for number in range(40)]
    ratings += [(0.0, "so so"), (-2.0, "film NUMBER20 is one")]
    monkeypatch.setattr(sentiment, "read_ratings", lambda corpus: ratings)
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


@pytest.mark.usefixtures("made")
def test_the_sign_of_the_rating_is_the_label():
    dataset = make_dataset("sentiment", length=5)
    train, test = dataset.load()
    assert torch.bincount(train.targets).tolist() == [8, 24]
    assert torch.bincount(test.targets).tolist() == [2, 6]
    assert dataset.chance_accuracy == 0.75
    assert dataset.chance_loss == pytest.approx(-(0.25 * torch.tensor(0.25).log() + 0.75 * torch.tensor(0.75).log()))


@pytest.mark.usefixtures("made")
def test_the_vocabulary_knows_the_training_part_only():
    common = make_dataset("sentiment", length=5)
    assert common.vocabulary == 2 + 3  # film, is, one; every number occurs once
    train, test = common.load()
    for split in (train, test):
        assert (split.inputs[:, [0, 2, 3]] >= 2).all()
        assert (split.inputs[:, 1] == 1).all()
        assert (split.inputs[:, 4] == 0).all()
    every = make_dataset("sentiment", length=3, min_count=1)
    train, test = every.load()
    assert every.vocabulary == 2 + 3 + 32
    assert (train.inputs >= 2).all()
    assert (test.inputs[:, 1] == 1).all()
    assert train.inputs.shape[1] == 3

"""MNIST from IDX files and from OpenML; without a network and without the real files wherever that can be."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request

import numpy as np
import pytest
import sklearn.datasets
import torch

from highway_bench.data import Data, Split, make_dataset
from highway_bench.data.mnist import (
    SUMS,
    TEST_COUNTS,
    TRAIN_COUNTS,
    _load,
    fetch_openml_arrays,
    read_folder,
    resplit,
)
from highway_bench.errors import BadInput


@pytest.fixture
def real(data_folder: Path) -> Path:
    if not (data_folder / "mnist").is_dir():
        pytest.skip("HIGHWAY_BENCH_DATA has no folder mnist")
    return data_folder / "mnist"


@pytest.fixture
def copied(real: Path, tmp_path: Path) -> Path:
    for name in SUMS:
        shutil.copyfile(real / f"{name}.gz", tmp_path / f"{name}.gz")
    return tmp_path


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "highway_bench"


def test_the_real_files_have_the_counts_that_chance_is_computed_from(real: Path) -> None:
    train_images, train_labels, test_images, test_labels = read_folder(real)
    assert train_images.shape == (60_000, 28, 28)
    assert test_images.shape == (10_000, 28, 28)
    assert tuple(np.bincount(train_labels)) == TRAIN_COUNTS
    assert tuple(np.bincount(test_labels)) == TEST_COUNTS


def test_counts_add_up() -> None:
    assert (sum(TRAIN_COUNTS), sum(TEST_COUNTS)) == (60_000, 10_000)
    mnist = make_dataset("mnist")
    assert mnist.chance_loss == pytest.approx(2.3012, abs=1e-4)  # a little below ln 10: the classes are not equal
    assert mnist.chance_accuracy == 0.1135


def test_a_truncated_file_is_named(copied: Path) -> None:
    path = copied / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(BadInput, match=r"train-images-idx3-ubyte\.gz: truncated"):
        read_folder(copied)


def test_a_file_in_the_place_of_another_is_named(copied: Path) -> None:
    shutil.copyfile(copied / "t10k-labels-idx1-ubyte.gz", copied / "train-labels-idx1-ubyte.gz")
    with pytest.raises(BadInput, match=r"train-labels-idx1-ubyte\.gz: wrong or damaged file"):
        read_folder(copied)


def test_a_missing_file_is_named_and_nothing_is_downloaded(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = nowhere / "mnist"
    folder.mkdir(parents=True)
    (folder / "t10k-labels-idx1-ubyte").write_bytes(b"")
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", None)
    with pytest.raises(BadInput, match=r"mnist: train-images-idx3-ubyte is missing \(or train-images-idx3-ubyte\.gz\)"):
        _load.__wrapped__()


def test_without_files_and_network_one_line_says_what_to_do(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fail(request: Request, **_: Any) -> None:
        asked.append(request.full_url)
        raise URLError("Name or service not known")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", fail)  # all above it is scikit-learn's own
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    assert make_dataset("mnist").missing() is not None
    with pytest.warns(UserWarning, match="network error"), pytest.raises(BadInput) as caught:
        _load.__wrapped__()
    assert asked
    assert all("mnist_784" in url for url in asked)
    assert (nowhere / "openml").is_dir()
    message = str(caught.value)
    assert "Name or service not known" in message
    assert "set HIGHWAY_BENCH_DATA to a folder" in message
    assert all(name in message for name in SUMS)
    assert "\n" not in message


def table(counts: tuple[int, ...], value: int) -> tuple[np.ndarray, np.ndarray]:
    """Made images, all of one value, with the given counts of digits; labels are strings, as OpenML's are."""
    labels = np.repeat(np.arange(10), counts)
    return np.full((len(labels), 784), value), labels.astype(str)


def test_openmls_table_is_parted_into_training_and_test(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = map(np.concatenate, zip(table(TRAIN_COUNTS, 0), table(TEST_COUNTS, 255), strict=True))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda name, **_: (images, labels.astype(object)))
    train, test = _load.__wrapped__()
    assert train.inputs.shape == (60_000, 1, 28, 28)
    assert train.inputs.max() == 0
    assert test.inputs.min() == 1
    assert tuple(torch.bincount(test.targets).tolist()) == TEST_COUNTS


def test_another_table_is_refused(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = map(np.concatenate, zip(table(TEST_COUNTS, 255), table(TRAIN_COUNTS, 0), strict=True))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda name, **_: (images, labels))
    with pytest.raises(BadInput, match="does not have MNIST's counts of digits; set HIGHWAY_BENCH_DATA"):
        fetch_openml_arrays(nowhere)


def test_a_new_split_has_every_image_once() -> None:
    digits = Split(torch.arange(40.0).reshape(40, 1, 1, 1), torch.arange(40))
    data = Data(Split(*(part[:30] for part in digits)), Split(*(part[30:] for part in digits)))
    drawn = resplit(data, 0.25, seed=1)
    assert (len(drawn.train.inputs), len(drawn.test.inputs)) == (30, 10)
    assert sorted(torch.cat((drawn.train.targets, drawn.test.targets)).tolist()) == list(range(40))
    assert torch.equal(drawn.test.inputs.flatten(), drawn.test.targets.float())
    assert not torch.equal(drawn.test.targets, resplit(data, 0.25, seed=2).test.targets)


@pytest.mark.parametrize("share", [0, 1.5, "a quarter"])
def test_an_impossible_share_is_refused(share: object) -> None:
    with pytest.raises(BadInput, match="test_share"):
        make_dataset("mnist", test_share=share)

"""MNIST from IDX files and from OpenML; without a network and without the real files wherever that can be."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request

import numpy as np
import pytest
import sklearn.datasets
import torch

from highway_bench.data import Data, Split, make_dataset
from highway_bench.data import _digit_images as _mnist_files
from highway_bench.data._digit_images import SUMS, find_mnist, md5_of, read_mnist
from highway_bench.data.mnist import TEST_COUNTS, TRAIN_COUNTS, _load, fetch_openml_arrays, resplit
from highway_bench.errors import BadInput


@pytest.fixture
def real(data_folder: Path) -> Path:
    if not (data_folder / "mnist").is_dir():
        pytest.skip("HIGHWAY_BENCH_DATA has no folder mnist")
    return data_folder / "mnist"


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "highway_bench"


@pytest.fixture
def small(nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder, and an MNIST of three images a part in place of the real one."""
    images, labels = np.arange(3 * 28 * 28, dtype=np.uint8).reshape(3, 28, 28), np.array([3, 1, 2], np.uint8)
    sums = (md5_of(part) for part in (images, labels, images[:2], labels[:2]))
    monkeypatch.setattr(_mnist_files, "SUMS", dict(zip(SUMS, sums, strict=True)))
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(tmp_path))
    return tmp_path


def write_idx(array: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(contents) if path.suffix == ".gz" else contents)


def write_small(folder: Path, name: str, *, transposed: bool = False) -> None:
    """Write the small MNIST; ``name`` has a place for the part, the kind and the number of axes."""
    images, labels = np.arange(3 * 28 * 28, dtype=np.uint8).reshape(3, 28, 28), np.array([3, 1, 2], np.uint8)
    for part, rows in (("train", 3), ("test" if "emnist" in name else "t10k", 2)):
        given = images.swapaxes(1, 2) if transposed else images
        write_idx(given[:rows], folder / name.format(part, "images", 3))
        write_idx(labels[:rows], folder / name.format(part, "labels", 1))


def write_tables(folder: Path, *, header: bool, suffix: str = "") -> None:
    for part, rows in (("train", 3), ("test", 2)):
        images, labels = np.arange(3 * 784, dtype=np.uint8).reshape(3, 784), [3, 1, 2]
        lines = [",".join(map(str, [labels[row], *images[row]])) for row in range(rows)]
        text = "\n".join(([",".join(["label", *(f"p{n}" for n in range(784))])] if header else []) + lines).encode()
        (folder / f"mnist_{part}.csv{suffix}").write_bytes(gzip.compress(text) if suffix else text)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(partial(write_small, name="mnist/{}-{}-idx{}-ubyte.gz"), id="published"),
        pytest.param(partial(write_small, name="MNIST/raw/{}-{}-idx{}-ubyte"), id="torchvision"),
        pytest.param(partial(write_small, name="{0}-{1}-idx{2}-ubyte/{0}-{1}-idx{2}-ubyte"), id="Kaggle, in folders"),
        pytest.param(partial(write_small, name="{}-{}.idx{}-ubyte"), id="Kaggle, with a dot"),
        pytest.param(partial(write_small, name="gzip/emnist-mnist-{}-{}-idx{}-ubyte.gz", transposed=True), id="EMNIST"),
        pytest.param(partial(write_tables, header=True), id="Kaggle, csv"),
        pytest.param(partial(write_tables, header=False, suffix=".gz"), id="csv.gz"),
    ],
)
def test_layouts_that_people_have(small: Path, write: Callable[[Path], None]) -> None:
    write(small)
    train_images, train_labels, _, test_labels = read_mnist(find_mnist())
    assert np.array_equal(train_images, np.arange(3 * 28 * 28, dtype=np.uint8).reshape(3, 28, 28))
    assert (train_labels.tolist(), test_labels.tolist()) == ([3, 1, 2], [3, 1])
    assert make_dataset("mnist").missing() is None


def test_a_file_that_is_not_mnists_is_named(small: Path) -> None:
    write_small(small, "emnist-mnist-{}-{}-idx{}-ubyte")
    write_idx(np.zeros((3, 28, 28), np.uint8), small / "emnist-mnist-train-images-idx3-ubyte")
    with pytest.raises(BadInput, match="emnist-mnist-train-images-idx3-ubyte"):
        read_mnist(find_mnist())


@pytest.mark.parametrize("text", ["1,2\n3,4,5\n", ""])
def test_another_table_is_named(small: Path, text: str) -> None:
    for part in ("train", "test"):
        (small / f"mnist_{part}.csv").write_text(text)
    with pytest.raises(BadInput, match=r"mnist_train\.csv") as caught:
        read_mnist(find_mnist())
    assert "\n" not in str(caught.value)


def test_the_real_files_have_the_counts_that_chance_is_computed_from(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(real))
    train_images, train_labels, test_images, test_labels = read_mnist(find_mnist())
    assert train_images.shape == (60_000, 28, 28)
    assert test_images.shape == (10_000, 28, 28)
    assert tuple(np.bincount(train_labels)) == TRAIN_COUNTS
    assert tuple(np.bincount(test_labels)) == TEST_COUNTS


def test_counts_add_up() -> None:
    assert (sum(TRAIN_COUNTS), sum(TEST_COUNTS)) == (60_000, 10_000)
    mnist = make_dataset("mnist")
    assert mnist.chance_loss == pytest.approx(2.3012, abs=1e-4)  # a little below ln 10: the classes are not equal
    assert mnist.chance_accuracy == 0.1135


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
    message = str(caught.value)
    assert "HIGHWAY_BENCH_DATA" in message
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
    with pytest.raises(BadInput, match="counts of digits"):
        fetch_openml_arrays(nowhere)


def test_a_new_split_has_every_image_once() -> None:
    digits = Split(torch.arange(40.0).reshape(40, 1, 1, 1), torch.arange(40))
    data = Data(Split(*(part[:30] for part in digits)), Split(*(part[30:] for part in digits)))
    drawn = resplit(data, 0.25, seed=1)
    assert (len(drawn.train.inputs), len(drawn.test.inputs)) == (30, 10)
    assert sorted(torch.cat((drawn.train.targets, drawn.test.targets)).tolist()) == list(range(40))
    assert torch.equal(drawn.test.inputs.flatten(), drawn.test.targets.float())
    assert not torch.equal(drawn.test.targets, resplit(data, 0.25, seed=2).test.targets)

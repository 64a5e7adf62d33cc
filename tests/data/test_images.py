"""Images of digits: those of packages, IDX files, and MNIST, without a network and without the real files where that
can be."""

import gzip
import hashlib
import struct
from functools import partial
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets
import torch
from hypothesis import given
from hypothesis import strategies as st

from highway_bench.data import Data, Split, make_dataset
from highway_bench.data import _digit_images as _mnist_files
from highway_bench.data._digit_images import SUMS, find_mnist, md5_of, read_idx, read_mnist
from highway_bench.data.mnist import TEST_COUNTS, TRAIN_COUNTS, _load, fetch_openml_arrays, resplit
from highway_bench.errors import BadInput

IMAGES = np.arange(3 * 28 * 28, dtype=np.uint8).reshape(3, 28, 28)
LABELS = np.array([3, 1, 2], np.uint8)


@pytest.fixture
def small(nowhere, tmp_path, monkeypatch):
    """The data folder, and an MNIST of three images a part in place of the real one."""
    sums = (md5_of(part) for part in (IMAGES, LABELS, IMAGES[:2], LABELS[:2]))
    monkeypatch.setattr(_mnist_files, "SUMS", dict(zip(SUMS, sums, strict=True)))
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(tmp_path))
    return tmp_path


def write_idx(array, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(contents) if path.suffix == ".gz" else contents)


def write_small(folder, name, *, transposed=False):
    """Write the small MNIST; ``name`` has a place for the part, the kind and the number of axes."""
    for part, rows in (("train", 3), ("test" if "emnist" in name else "t10k", 2)):
        shown = IMAGES.swapaxes(1, 2) if transposed else IMAGES
        write_idx(shown[:rows], folder / name.format(part, "images", 3))
        write_idx(LABELS[:rows], folder / name.format(part, "labels", 1))


def write_tables(folder, *, header, suffix=""):
    for part, rows in (("train", 3), ("test", 2)):
        lines = [",".join(map(str, [LABELS[row], *IMAGES[row].flatten()])) for row in range(rows)]
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
def test_layouts_that_people_have(small, write):
    write(small)
    train_images, train_labels, _, test_labels = read_mnist(find_mnist())
    assert np.array_equal(train_images, IMAGES)
    assert (train_labels.tolist(), test_labels.tolist()) == ([3, 1, 2], [3, 1])
    assert make_dataset("mnist").missing() is None


def test_a_file_that_is_not_mnists_is_named(small):
    write_small(small, "emnist-mnist-{}-{}-idx{}-ubyte")
    write_idx(np.zeros((3, 28, 28), np.uint8), small / "emnist-mnist-train-images-idx3-ubyte")
    with pytest.raises(BadInput, match="emnist-mnist-train-images-idx3-ubyte"):
        read_mnist(find_mnist())


@pytest.mark.parametrize("text", ["1,2\n3,4,5\n", ""])
def test_another_table_is_named(small, text):
    for part in ("train", "test"):
        (small / f"mnist_{part}.csv").write_text(text)
    with pytest.raises(BadInput, match=r"^.*mnist_train\.csv.*$"):
        read_mnist(find_mnist())


def test_the_counts_that_chance_is_computed_from():
    if not (files := find_mnist()):
        pytest.skip("without MNIST's files")
    _, train_labels, _, test_labels = read_mnist(files)
    assert tuple(np.bincount(train_labels)) == TRAIN_COUNTS
    assert tuple(np.bincount(test_labels)) == TEST_COUNTS


def test_without_files_and_network_one_line_says_what_to_do(nowhere, monkeypatch):
    asked = []

    def fail(request, **_):
        asked.append(request.full_url)
        raise URLError("Name or service not known")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", fail)  # all above it is scikit-learn's own
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    assert make_dataset("mnist").missing() is not None
    with pytest.warns(UserWarning, match="network error"), pytest.raises(BadInput) as caught:
        _load.__wrapped__()
    assert asked
    assert "HIGHWAY_BENCH_DATA" in str(caught.value)


def table(counts, value):
    """Made images, all of one value, with the given counts of digits; labels are strings, as OpenML's are."""
    labels = np.repeat(np.arange(10), counts)
    return np.full((len(labels), 784), value, np.uint8), labels.astype(str)


def test_openmls_table_is_parted_into_training_and_test(nowhere, monkeypatch):
    images, labels = map(np.concatenate, zip(table(TRAIN_COUNTS, 0), table(TEST_COUNTS, 255), strict=True))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda name, **_: (images, labels.astype(object)))
    train, test = _load.__wrapped__()
    assert train.inputs.shape == (60_000, 1, 28, 28)
    assert train.inputs.max() == 0
    assert test.inputs.min() == 1
    assert tuple(torch.bincount(test.targets).tolist()) == TEST_COUNTS


def test_another_table_is_refused(nowhere, monkeypatch):
    images, labels = map(np.concatenate, zip(table(TEST_COUNTS, 255), table(TRAIN_COUNTS, 0), strict=True))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda name, **_: (images, labels))
    with pytest.raises(BadInput, match="counts of digits"):
        fetch_openml_arrays(nowhere)


def test_a_new_split_has_every_image_once():
    digits = Split(torch.arange(40.0).reshape(40, 1, 1, 1), torch.arange(40))
    data = Data(Split(*(part[:30] for part in digits)), Split(*(part[30:] for part in digits)))
    drawn = resplit(data, 0.25, seed=1)
    assert (len(drawn.train.inputs), len(drawn.test.inputs)) == (30, 10)
    assert sorted(torch.cat((drawn.train.targets, drawn.test.targets)).tolist()) == list(range(40))
    assert torch.equal(drawn.test.inputs.flatten(), drawn.test.targets.float())
    assert not torch.equal(drawn.test.targets, resplit(data, 0.25, seed=2).test.targets)


# ----------------------------------------------------------------------------------------------------------- IDX files

ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
CONTENTS = bytes.fromhex("00000803 00000002 00000003 00000004") + ARRAY.tobytes()
PACKED = gzip.compress(CONTENTS, mtime=0)  # the same bytes in every process: they name tests


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some-idx3-ubyte"


@pytest.mark.parametrize(
    ("contents", "fault"),
    [
        (b"", "not an IDX file"),
        (b"PNG!" + CONTENTS, "50 4e 47 21"),
        (b"\0\0\x0d" + CONTENTS[3:], "0x0d"),
        (CONTENTS[:9], "header"),
        (CONTENTS[:-1], "24 bytes.*23"),
        (CONTENTS + b"\0", "24 bytes.*25"),
        (PACKED[:-9], "incomplete"),
        (PACKED[:-8] + bytes(8), "damaged"),
    ],
)
def test_a_bad_file_is_named_with_its_fault(path, contents, fault):
    path.write_bytes(contents)
    with pytest.raises(BadInput, match=f"^.*some-idx3-ubyte: .*{fault}.*$"):
        read_idx(path)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        read_idx(tmp_path)


@given(cut=st.integers(0, 300), compressed=st.booleans())
def test_wherever_a_file_is_cut(tmp_path_factory, cut, compressed):
    whole = PACKED if compressed else CONTENTS
    path = tmp_path_factory.getbasetemp() / "cut"
    path.write_bytes(whole[:cut])
    if cut < len(whole):
        with pytest.raises(BadInput):
            read_idx(path)
    else:
        assert np.array_equal(read_idx(path), ARRAY)


# ---------------------------------------------------------------------------------------------------- those of packages

SPLITS = {  # SHA-256 of the images and labels, training then test: a change makes old results incomparable
    "digits": (1437, 360, "fe7523dbb003d64d2a04e3b8f1ef8ce756bf97c8fb66bbd40452b87244cc3680"),
    "mnist-5k": (4000, 1000, "e3a20bc1bf301c8afc830efaed1740b0102b2b85a452a2a3e4cc937fb5f280d6"),
}


@pytest.mark.parametrize("name", SPLITS)
def test_the_split_never_changes(name):
    train_items, test_items, sha256 = SPLITS[name]
    train, test = make_dataset(name).load()
    assert (len(train.targets), len(test.targets)) == (train_items, test_items)
    levels = 16 if name == "digits" else 255
    digest = hashlib.sha256()
    for split in (train, test):
        pixels = (split.inputs * levels).round().to(torch.uint8)
        digest.update(pixels.numpy().tobytes())
        digest.update(split.targets.to(torch.uint8).numpy().tobytes())
    assert digest.hexdigest() == sha256

"""Images of digits: what the data sets have in common, the format IDX, and the layouts of MNIST that people have.

The layouts of MNIST are those of its authors, of torchvision, of Kaggle, and of EMNIST:

- IDX, plain or ``.gz``: ``train-images-idx3-ubyte`` and so on, also with a dot before ``idx3``, also each in a folder
  of its own name; EMNIST's ``emnist-mnist-train-images-idx3-ubyte``, whose images are transposed.
- CSV, plain or ``.gz``: ``mnist_train.csv`` and ``mnist_test.csv``, a label and 784 pixels a row, maybe with a header.

Each part is compared with the MD5 sum of the published one, so that all layouts give the same data.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from highway_bench.data._files import contents_of, searched_folders
from highway_bench.data.base import Data, DataSet, Split, stratified_rows
from highway_bench.errors import BadInput

UNSIGNED_BYTE = 0x08
Bytes = NDArray[np.uint8]
SUMS: Mapping[str, str] = {  # MD5 of the unpacked IDX files, training images and labels first, then the test set's
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
TABLES = ("mnist_train.csv", "mnist_test.csv")
WANTED = (
    f"{', '.join(SUMS)} (plain or .gz), or {' and '.join(TABLES)} (Kaggle's competition has other tables, without the "
    "test set's labels)"
)
LAYOUTS = (".", "raw", "MNIST", "MNIST/raw", "EMNIST", "EMNIST/raw", "gzip")  # folders, from where data are looked for
IDX_NAME = re.compile(r"(?:emnist-mnist-)?(train|t10k|test)-(images-idx3|labels-idx1)-ubyte(?:\.gz)?")
TABLE_NAME = re.compile(r"(mnist_(?:train|test)\.csv)(?:\.gz)?")
SIDE = 28


class DigitImages(DataSet):
    """Images (1, side, side) of the digits 0 to 9."""

    input_kind = "image"
    target_kind = "class"
    outputs = 10
    side: ClassVar[int]

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (1, self.side, self.side)


def stratified(pixels: Tensor, labels: NDArray[np.int64], *, test: int, seed: int) -> Data:
    """Images and their ``labels`` in a fixed stratified split with ``test`` test items."""
    classes = torch.from_numpy(labels)
    train, held_out = stratified_rows(labels, test=test, seed=seed)
    return Data(Split(pixels[train], classes[train]), Split(pixels[held_out], classes[held_out]))


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an IDX file, in the shape that its header gives.

    The header is two zero bytes, a type code, the number of axes, and each axis' length as four bytes. Raises
    ``BadInput``, which names the file, where the file cannot be read or unpacked, is not IDX, or does not have the
    length that its header gives.
    """
    contents = contents_of(path)
    if len(contents) < 4 or contents[:2] != b"\0\0":
        raise BadInput(f"{path}: not an IDX file, it starts with the bytes {contents[:4].hex(' ') or '(none)'}")
    kind, axes = contents[2], contents[3]
    if kind != UNSIGNED_BYTE:
        raise BadInput(f"{path}: IDX type code 0x{kind:02x}, where unsigned bytes (0x08) are expected")
    start = 4 + 4 * axes
    if len(contents) < start:
        raise BadInput(f"{path}: truncated within its header, after {len(contents)} bytes")
    shape = struct.unpack(f">{axes}I", contents[4:start])
    announced = math.prod(shape)
    if len(contents) - start != announced:
        fault = "truncated" if len(contents) - start < announced else "too long"
        raise BadInput(
            f"{path}: {fault}, its header announces {announced:,} bytes of data and it holds {len(contents) - start:,}"
        )
    return np.frombuffer(contents, np.uint8, offset=start).reshape(shape)


def find_mnist() -> dict[str, Path]:
    """The files in the first folder that has any of MNIST's, by their names in ``SUMS`` or ``TABLES``; empty where no
    folder has one."""
    for base in searched_folders("mnist"):
        for layout in LAYOUTS:
            for names in (idx_name, table_name):
                if found := {name: path for path in files_in(base / layout) if (name := names(path))}:
                    return found
    return {}


def read_mnist(files: Mapping[str, Path]) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """Training images (60000, 28, 28) and labels (60000,), then the test set's, from the ``files`` found in one folder.

    Raises ``BadInput`` that names the file which is missing, truncated, damaged or not MNIST's.
    """
    wanted = TABLES if files.keys() <= set(TABLES) else tuple(SUMS)
    for name in wanted:
        if name not in files:
            here = next(iter(files.values())).parent
            raise BadInput(f"{here}: {name} is missing (or {name}.gz), while other files of MNIST are there")
    if wanted == TABLES:
        read = [part for name in TABLES for part in read_table(files[name])]
        paths = [files[name] for name in TABLES for _ in range(2)]
    else:
        paths = [files[name] for name in SUMS]
        read = list(map(read_idx, paths))
    train_images, train_labels, test_images, test_labels = map(as_published, read, SUMS, paths)
    return train_images, train_labels, test_images, test_labels


def files_in(folder: Path) -> list[Path]:
    """The files in ``folder``, and those that lie in a folder of their own name, by path."""
    if not folder.is_dir():
        return []
    inner = (path / path.name if path.is_dir() else path for path in sorted(folder.iterdir()))
    return [path for path in inner if path.is_file()]


def idx_name(path: Path) -> str | None:
    """The name in ``SUMS`` of a file with this path; ``None`` for another file."""
    matched = IDX_NAME.fullmatch(path.name.replace(".idx", "-idx"))
    return f"{'train' if matched[1] == 'train' else 't10k'}-{matched[2]}-ubyte" if matched else None


def table_name(path: Path) -> str | None:
    """The name in ``TABLES`` of a file with this path; ``None`` for another file."""
    matched = TABLE_NAME.fullmatch(path.name)
    return matched[1] if matched else None


def read_table(path: Path) -> tuple[Bytes, Bytes]:
    """Images (n, 28, 28) and labels (n,) of a table with a label and 784 pixels a row; ``BadInput`` for another one."""
    import pandas as pd

    contents = contents_of(path)
    try:
        header = None if contents[:1].isdigit() else 0
        table = pd.read_csv(io.BytesIO(contents), header=header, dtype=np.uint8).to_numpy()
        return table[:, 1:].reshape(-1, SIDE, SIDE), table[:, 0]
    except (ValueError, OverflowError) as error:  # pandas' own errors are ValueErrors
        raise BadInput(f"{path}: not a table with a label and 784 pixels a row: {str(error).strip()}") from None


def as_published(read: Bytes, name: str, path: Path) -> Bytes:
    """What was read from ``path`` if it is MNIST's part ``name``, maybe with transposed images; else ``BadInput``."""
    sums = {md5_of(array): array for array in (read.swapaxes(-2, -1) if read.ndim == 3 else read, read)}
    if SUMS[name] in sums:
        return sums[SUMS[name]]
    if path.name.startswith("emnist"):
        raise BadInput(f"{path}: EMNIST's own digits, other images than MNIST's; no results could be compared")
    raise BadInput(f"{path}: wrong or damaged file, the MD5 of its {name} is {md5_of(read)} and not {SUMS[name]}")


def md5_of(array: Bytes) -> str:
    """The MD5 sum of the IDX file that holds ``array``."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return hashlib.md5(header + array.tobytes(), usedforsecurity=False).hexdigest()

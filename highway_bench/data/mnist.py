"""``mnist``: the whole of MNIST, from files in a folder or from OpenML."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from highway_bench.data._digit_images import WANTED, Bytes, DigitImages, find_mnist, read_mnist
from highway_bench.data._files import cache_folder, how_to_give
from highway_bench.data.base import Data, Split, commonest_share, label_entropy, register_dataset
from highway_bench.errors import BadInput

# Images of each digit: the chance scores follow from these without the files
TRAIN_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
TEST_COUNTS = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)


@register_dataset(
    "mnist",
    summary="70,000 hand-written digits of 28 × 28 pixels, from IDX files or OpenML",
    source="LeCun, Cortes and Burges; OpenML's mnist_784",
)
@dataclass(frozen=True)
class Mnist(DigitImages):
    """MNIST: 60,000 training and 10,000 test images of 28 × 28 pixels, as published.

    Read from the four IDX files or two CSV tables (plain or ``.gz``), as their authors, torchvision, Kaggle or EMNIST
    lay them out, in the folder ``mnist`` of ``HIGHWAY_BENCH_DATA``, in that folder itself, or in ``mnist`` of the cache
    folder, and compared with their known MD5 sums. Where there are none, OpenML's copy is downloaded into the cache
    folder once.

    ``test_share``, if given, draws another test set from all 70,000 images, at random by the seed that the data are
    loaded with: 0.25 leaves 52,500 images for training. ``chance_loss`` and ``chance_accuracy`` remain those of the
    published split.
    """

    side: ClassVar[int] = 28

    test_share: float | None = None

    def __post_init__(self) -> None:
        share: object = self.test_share
        if share is not None and not (isinstance(share, float) and 0 < share < 1):
            raise BadInput(f"test_share is the test set's share of all images, between 0 and 1, not {share!r}")

    @property
    def chance_loss(self) -> float:
        return label_entropy(TRAIN_COUNTS)

    @property
    def chance_accuracy(self) -> float:
        return commonest_share(TRAIN_COUNTS, TEST_COUNTS)

    def missing(self) -> str | None:
        if find_mnist():
            return None
        return f"no folder has MNIST's files; they would be downloaded from OpenML; {how_to_give('mnist', WANTED)}"

    def load(self, *, seed: int = 0) -> Data:
        """The data in memory. Raises ``BadInput`` for a missing, truncated or wrong file, or where OpenML fails."""
        data = _load()
        return data if self.test_share is None else resplit(data, self.test_share, seed)


@cache
def _load() -> Data:
    if files := find_mnist():
        train_images, train_labels, test_images, test_labels = read_mnist(files)
    else:
        train_images, train_labels, test_images, test_labels = fetch_openml_arrays(cache_folder() / "openml")
    return Data(_split(train_images, train_labels), _split(test_images, test_labels))


def resplit(data: Data, test_share: float, seed: int) -> Data:
    """All images of ``data`` split at random by ``seed``, a share of them for testing."""
    inputs, targets = (torch.cat(parts) for parts in zip(data.train, data.test, strict=True))
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    tested = round(test_share * len(inputs))
    test, train = order[:tested], order[tested:]
    return Data(Split(inputs[train], targets[train]), Split(inputs[test], targets[test]))


def fetch_openml_arrays(folder: Path) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """As ``read_mnist``, from OpenML through scikit-learn, which stores its download in ``folder``.

    OpenML has both sets in one table, the training images first. The count of every digit in either part is compared
    with the known one. Raises ``BadInput`` with advice where the table cannot be downloaded or is another one.
    """
    from sklearn.datasets import fetch_openml

    advice = how_to_give("mnist", WANTED)
    try:
        images, labels = fetch_openml(
            "mnist_784",
            version=1,
            data_home=str(folder),
            as_frame=False,
            return_X_y=True,
            n_retries=1,  # the fewest that scikit-learn accepts
        )
    except (OSError, HTTPException, ValueError) as error:  # no network or disk space, or another table
        raise BadInput(f"MNIST is in no folder and could not be downloaded from OpenML ({error}); {advice}") from error
    pixels = np.asarray(images, np.uint8).reshape(-1, Mnist.side, Mnist.side)
    digits = np.asarray(labels, np.uint8)
    counts = [tuple(np.bincount(part, minlength=10).tolist()) for part in (digits[:60_000], digits[60_000:])]
    if counts != [TRAIN_COUNTS, TEST_COUNTS]:
        raise BadInput(f"OpenML's mnist_784 does not have MNIST's counts of digits; {advice}")
    return pixels[:60_000], digits[:60_000], pixels[60_000:], digits[60_000:]


def _split(images: Bytes, labels: Bytes) -> Split:
    pixels = torch.from_numpy(images[:, None].astype(np.float32)) / 255
    return Split(pixels, torch.from_numpy(labels.astype(np.int64)))

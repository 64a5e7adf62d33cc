"""``digits``: scikit-learn's hand-written digits of 8 × 8 pixels, in its wheel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import torch

from highway_bench.data._digit_images import DigitImages, stratified
from highway_bench.data.base import Data, commonest_share, label_entropy, register_dataset

SPLIT_SEED = 1797
TEST_ITEMS = 360


@register_dataset(
    "digits",
    summary="1,797 hand-written digits of 8 × 8 pixels",
    source="scikit-learn's load_digits; UCI Optical Recognition of Handwritten Digits (test part)",
)
@dataclass(frozen=True)
class Digits(DigitImages):
    """Digits of 8 × 8 pixels: 1,437 training and 360 test images in a fixed stratified split.

    Pixels count the set ones of a 4 × 4 square, 0 to 16, and are divided by 16.
    """

    side: ClassVar[int] = 8

    @property
    def chance_loss(self) -> float:
        return label_entropy(np.bincount(self.load().train.targets))

    @property
    def chance_accuracy(self) -> float:
        train, test = self.load()
        return commonest_share(np.bincount(train.targets), np.bincount(test.targets))

    def load(self, *, seed: int = 0) -> Data:
        return _load()


@cache
def _load() -> Data:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    pixels = torch.from_numpy(images.reshape(-1, 1, Digits.side, Digits.side) / 16).float()
    return stratified(pixels, labels.astype(np.int64), test=TEST_ITEMS, seed=SPLIT_SEED)

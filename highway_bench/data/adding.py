"""``adding``: add the two marked numbers of a sequence; generated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from highway_bench.data.base import Data, DataSet, Split, check_count, generators, register_dataset


@register_dataset(
    "adding",
    summary="the sum of the two marked numbers of a sequence",
    source="Hochreiter and Schmidhuber 1997; sizes of locuslab/TCN (arXiv:1803.01271)",
)
@dataclass(frozen=True)
class Adding(DataSet):
    """The adding problem: ``length`` numbers from U[0, 1) and a mask that marks two of them; the target is their sum.

    Both marks may be anywhere: their pair of different steps is drawn uniformly. Other versions draw one in each half.
    The target has mean 1 and variance 2 · 1/12, so always predicting 1 has a mean squared error of 1/6. The problem
    suits bidirectional layers too, since the target is no part of the input.
    """

    input_kind = "series"
    target_kind = "scalar"
    outputs = 1

    length: int = 50
    size: int = 50_000
    test_size: int = 1_000

    def __post_init__(self) -> None:
        check_count("length", self.length, least=2)
        check_count("size", self.size, least=1)
        check_count("test_size", self.test_size, least=1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.length, 2)

    @property
    def chance_loss(self) -> float:
        return 1 / 6

    def load(self, *, seed: int = 0) -> Data:
        return _generate(self, seed)


@lru_cache(maxsize=2)
def _generate(options: Adding, seed: int) -> Data:
    train, test = generators(seed)
    return Data(_items(options.size, options.length, train), _items(options.test_size, options.length, test))


def _items(size: int, length: int, rng: np.random.Generator) -> Split:
    values = rng.random((size, length), dtype=np.float32)
    first = rng.integers(length, size=size)
    second = (first + rng.integers(1, length, size=size)) % length  # any other step, all equally likely
    mask = np.zeros((size, length), np.float32)
    rows = np.arange(size)
    mask[rows, first] = mask[rows, second] = 1
    inputs = np.stack([values, mask], axis=-1)
    return Split(torch.from_numpy(inputs), torch.from_numpy(values[rows, first] + values[rows, second]))

"""``copy``: repeat ten symbols after a long wait; generated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from highway_bench.data.base import Data, DataSet, Split, check_count, generators, register_dataset

MEMORY = 10  # symbols to remember
SYMBOLS = 8
BLANK, FIRST_SYMBOL, MARKER = 1, 2, 10  # input ids; 0 is padding and never occurs


@register_dataset(
    "copy",
    summary="ten symbols, a wait, and the same symbols again",
    source="arXiv:1511.06464, sec. 5.1; layout of locuslab/TCN (arXiv:1803.01271)",
)
@dataclass(frozen=True)
class CopyMemory(DataSet):
    """The copy memory problem with a wait of T = ``length``: T + 20 steps, each with a target.

    Input: ten symbols out of eight, T − 1 blanks, and a marker in each of the last eleven steps. Target: blank (class
    0) in T + 10 steps, then the ten symbols (classes 1 to 8) in their order. Input ids are one higher than classes,
    because 0 is padding.

    The best prediction without memory is "blank", and all eight symbols alike in the last ten steps: a cross entropy of
    10 ln 8 / (T + 20) per step, the loss of the best constant predictor. No two rows have the same symbols, not even in
    different parts.

    Bidirectional layers: no target is visible at its own step, since only markers follow, but the backward direction
    can count the steps from the end. Attention, causal or not, reads the symbols directly and needs no memory over
    time. Label such results; a statement about memory needs a layer of one direction.
    """

    input_kind = "tokens"
    target_kind = "token"
    outputs = SYMBOLS + 1
    vocabulary = MARKER + 1

    length: int = 50
    size: int = 10_000
    test_size: int = 1_000

    def __post_init__(self) -> None:
        check_count("length", self.length, least=1)
        check_count("size", self.size, least=1)
        check_count("test_size", self.test_size, least=1)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.length + 2 * MEMORY,)

    @property
    def chance_loss(self) -> float:
        return MEMORY * math.log(SYMBOLS) / (self.length + 2 * MEMORY)

    @property
    def chance_accuracy(self) -> float:
        """Mean share of correct steps when predicting blank, and one fixed symbol in the last ten steps."""
        return (self.length + MEMORY + MEMORY / SYMBOLS) / (self.length + 2 * MEMORY)

    def load(self, *, seed: int = 0) -> Data:
        return _generate(self, seed)


@lru_cache(maxsize=2)
def _generate(options: CopyMemory, seed: int) -> Data:
    rng, _ = generators(seed)
    # numbers of ten octal digits, drawn together without repeats, so that no test row is a training row
    numbers = rng.choice(SYMBOLS**MEMORY, size=options.size + options.test_size, replace=False)
    symbols = numbers[:, None] // SYMBOLS ** np.arange(MEMORY) % SYMBOLS
    return Data(_items(symbols[: options.size], options.length), _items(symbols[options.size :], options.length))


def _items(symbols: NDArray[np.int64], wait: int) -> Split:
    steps = wait + 2 * MEMORY
    inputs = np.full((len(symbols), steps), BLANK, np.int64)
    inputs[:, :MEMORY] = FIRST_SYMBOL + symbols
    inputs[:, -MEMORY - 1 :] = MARKER
    targets = np.zeros((len(symbols), steps), np.int64)
    targets[:, -MEMORY:] = 1 + symbols
    return Split(torch.from_numpy(inputs), torch.from_numpy(targets))

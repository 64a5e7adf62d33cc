"""``recall``: which value came with this key? Associative recall with several queries; generated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from highway_bench.data.base import IGNORED, Data, DataSet, Split, check_count, generators, register_dataset
from highway_bench.errors import BadInput

NEARNESS = 0.01  # exponent a of the source's power law: more queries soon after the pairs than late


@register_dataset(
    "recall",
    summary="the values of keys seen before, several queries a sequence",
    source="multi-query associative recall, Zoology (arXiv:2312.04927)",
)
@dataclass(frozen=True)
class Recall(DataSet):
    """Multi-query associative recall: key–value pairs, then the same keys among noise; the targets are the values.

    The first half of the ``vocab`` ids (1 up, 0 being padding) are keys, the second half values; within a row no key
    and no value is in two of its ``pairs``. After the pairs every key occurs once more as a query, at an even distance
    2g from their end; g ≥ 0 is drawn without repeats with weights (g + 1)^(a − 1), a = 0.01. The target at a query's
    step is the value of its key, and −100 elsewhere. The input at that step is the key, never the target. All other
    steps of ``length`` hold noise: tokens drawn from the whole vocabulary, keys and values among them.

    The best constant predictor gives all values the same probability: ln(``vocab`` / 2) nat per query.

    Bidirectional layers see no target that a causal layer does not see, since pairs come before queries, but they also
    see the noise and the queries to the right. Label such results as bidirectional: the published ones are causal.
    """

    input_kind = "tokens"
    target_kind = "token"

    length: int = 64
    pairs: int = 4
    vocab: int = 256
    size: int = 100_000
    test_size: int = 3_000

    def __post_init__(self) -> None:
        for option, least in (("length", 4), ("pairs", 1), ("vocab", 4), ("size", 1), ("test_size", 1)):
            check_count(option, getattr(self, option), least=least)
        if self.vocab % 2:
            raise BadInput(f"vocab must be even, half keys and half values, not {self.vocab}")
        if self.length < 4 * self.pairs:
            raise BadInput(
                f"{self.pairs} pairs and their queries need a length of {4 * self.pairs} or more, not {self.length}"
            )
        if self.pairs > self.vocab // 2 - 1:
            raise BadInput(f"a vocab of {self.vocab} has {self.vocab // 2 - 1} keys, too few for {self.pairs} pairs")

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.length,)

    @property
    def outputs(self) -> int:
        """The whole vocabulary, as in the source: a network has to learn that targets are values."""
        return self.vocab

    @property
    def vocabulary(self) -> int:
        return self.vocab

    @property
    def chance_loss(self) -> float:
        return math.log(self.vocab // 2)

    @property
    def chance_accuracy(self) -> float:
        return 1 / (self.vocab // 2)

    def load(self, *, seed: int = 0) -> Data:
        return _generate(self, seed)


@lru_cache(maxsize=2)
def _generate(options: Recall, seed: int) -> Data:
    train, test = generators(seed)
    return Data(_items(options, options.size, train), _items(options, options.test_size, test))


def _items(options: Recall, size: int, rng: np.random.Generator) -> Split:
    half, pairs = options.vocab // 2, options.pairs
    keys = 1 + _draw(np.ones(half - 1), pairs, size, rng)
    values = half + _draw(np.ones(half), pairs, size, rng)
    room = (options.length - 2 * pairs) // 2
    steps = 2 * pairs + 2 * _draw(np.arange(1, room + 1) ** (NEARNESS - 1), pairs, size, rng)

    inputs = rng.integers(1, options.vocab, size=(size, options.length))
    inputs[:, 0 : 2 * pairs : 2] = keys
    inputs[:, 1 : 2 * pairs : 2] = values
    np.put_along_axis(inputs, steps, keys, axis=1)
    targets = np.full((size, options.length), IGNORED, np.int64)
    np.put_along_axis(targets, steps, values, axis=1)
    return Split(torch.from_numpy(inputs), torch.from_numpy(targets))


def _draw(weights: NDArray[np.floating], count: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``size`` rows of ``count`` different indices below ``len(weights)``, drawn one by one with these weights.

    Gumbel-top-k: the largest sums of log-weights and Gumbel noise are such a draw, for all rows at once.
    """
    scores = np.log(weights).astype(np.float32) + rng.gumbel(size=(size, len(weights))).astype(np.float32)
    return np.argsort(-scores, axis=1)[:, :count]

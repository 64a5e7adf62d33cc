"""Random generators of the generated data sets."""

from __future__ import annotations

import numpy as np

from highway_bench.data.base import check_count


def generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for the training and the test part, so that the size of one part does not change the
    other."""
    check_count("seed", seed, least=0)
    train, test = np.random.SeedSequence(seed).spawn(2)
    return np.random.default_rng(train), np.random.default_rng(test)

"""A success that rises with depth is named, and its p value is that of chance."""

from __future__ import annotations

import numpy as np
import pytest

from highway_bench.errors import BadInput
from highway_bench.success.monotone import largest_rise


def test_the_largest_rise_is_named() -> None:
    rise = largest_rise({10: (10, 10), 20: (3, 10), 50: (5, 10), 200: (8, 10), 500: (0, 10)})
    assert rise is not None
    assert (rise.shallow, rise.deep) == (20, 200)
    assert 0.01 < rise.p < 0.1


def test_a_clear_rise_and_none() -> None:
    clear = largest_rise({20: (0, 10), 200: (10, 10)})
    assert clear is not None
    assert clear.p < 0.001
    assert largest_rise({10: (10, 10), 20: (8, 10), 50: (8, 10), 100: (0, 10)}) is None
    assert largest_rise({10: (4, 10)}) is None


def test_equal_rates_rarely_look_like_a_rise() -> None:
    """At a level of 5 %, at most about one ladder of equal rates in twenty."""
    rng = np.random.default_rng(1)
    ladders = [
        dict(zip((10, 20, 50, 100), [(int(k), 10) for k in row], strict=True))
        for row in rng.binomial(10, 0.5, (100, 4))
    ]
    found = [rise for rise in map(largest_rise, ladders) if rise is not None and rise.p < 0.05]
    assert len(found) <= 12


def test_what_it_refuses() -> None:
    with pytest.raises(BadInput, match="no depth"):
        largest_rise({})
    with pytest.raises(BadInput):
        largest_rise({10: (11, 10)})

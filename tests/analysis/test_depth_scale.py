"""The depth scale of correlations that decay as they are told to, and none of others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from highway_bench.analysis.depth_scale import depth_scale


@pytest.mark.parametrize("scale", [1.5, 5.0, 20.0])
@pytest.mark.parametrize(("start", "rest"), [(0.0, 1.0), (0.9, 0.2)])
def test_an_exponential_gives_its_scale(scale: float, start: float, rest: float) -> None:
    layers = np.arange(51)
    curve = rest + (start - rest) * np.exp(-layers / scale)
    assert depth_scale(list(curve)) == pytest.approx(scale, rel=1e-3)
    noisy = curve + 0.01 * np.random.default_rng(0).standard_normal(51)
    assert depth_scale(list(noisy)) == pytest.approx(scale, rel=0.3)


@pytest.mark.parametrize(
    "curve",
    [
        [0.5] * 30,
        list(0.5 + 0.2 * np.random.default_rng(1).standard_normal(40)),
        list(np.linspace(0, 1, 30)),  # a straight line: no scale within its depth
        [0.0, 0.5, 0.75, 1.0],
        [0.0, 0.5, math.nan, 0.8, 0.9, 1.0, 1.0],
    ],
)
def test_none_where_nothing_decays(curve: list[float]) -> None:
    assert depth_scale(curve) is None

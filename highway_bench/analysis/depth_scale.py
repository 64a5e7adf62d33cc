"""Decay: the depth over which two inputs' correlation comes to rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import curve_fit

LEAST_CHANGE = 0.05  # of the correlation over all layers: less is the noise of a finite width
LEAST_EXPLAINED = 0.9  # share of the variance


def depth_scale(correlation: Sequence[float]) -> float | None:
    """ξ, in layers, of the least-squares fit c_l = c* + a·exp(−l/ξ) to the correlations by layer (arXiv:1611.01232).

    ``None`` where no decay is to be seen: fewer than five layers, values that are not finite, a change of less than
    0.05 in all, a fit that leaves more than a tenth of the variance, a scale beyond the depth, or a fixed point c* that
    is no correlation. Where c reaches its
    fixed point by a power of l, as it does for ReLU at its critical start, ξ is only a scale of what was seen.
    """
    values: NDArray[np.float64] = np.asarray(correlation, dtype=np.float64)
    depth = len(values) - 1
    if depth < 5 or not np.isfinite(values).all() or np.ptp(values) < LEAST_CHANGE:
        return None
    layers = np.arange(depth + 1, dtype=np.float64)
    start = (float(values[-1]), float(values[0] - values[-1]), depth / 4)
    bounds = ((-3.0, -4.0, 0.05), (3.0, 4.0, 10.0 * depth))  # a straight line is to find its scale beyond the depth
    start = tuple(np.clip(start, bounds[0], bounds[1]))
    try:
        found, _ = curve_fit(_decaying, layers, values, p0=start, bounds=bounds)
    except RuntimeError:  # scipy found no least squares: the correlations do not fall as an exponential does
        return None
    left = values - _decaying(layers, *found)
    explained = 1 - left.var() / values.var()
    rest, scale = float(found[0]), float(found[2])
    return scale if explained >= LEAST_EXPLAINED and scale <= depth and abs(rest) <= 1 + LEAST_CHANGE else None


def _decaying(layer: NDArray[np.float64], rest: float, amplitude: float, scale: float) -> NDArray[np.float64]:
    curve: NDArray[np.float64] = rest + amplitude * np.exp(-layer / scale)
    return curve

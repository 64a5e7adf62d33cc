"""Depth scale: over how many layers the correlation of two inputs approaches its fixed point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # a part of it is imported at its first use
from numpy.typing import NDArray

LEAST_CHANGE = 0.05  # of the correlation over all layers: less is the noise of a finite width
LEAST_EXPLAINED = 0.9  # share of the variance


def depth_scale(correlation: Sequence[float]) -> float | None:
    """ξ, in layers, of the least-squares fit c_l = c* + a·exp(−l/ξ) to the correlations by layer (arXiv:1611.01232).

    ``None`` where no exponential approach is visible: fewer than five layers, values that are not finite, a total
    change below 0.05, a fit that leaves more than a tenth of the variance unexplained, a scale beyond the depth, or a
    fixed point c* outside [−1, 1]. Where c approaches its fixed point as a power of l, as for ReLU at its critical
    init, ξ only describes the measured layers.
    """
    values: NDArray[np.float64] = np.asarray(correlation, dtype=np.float64)
    depth = len(values) - 1
    if depth < 5 or not np.isfinite(values).all() or np.ptp(values) < LEAST_CHANGE:
        return None
    layers = np.arange(depth + 1, dtype=np.float64)
    start = (float(values[-1]), float(values[0] - values[-1]), depth / 4)
    bounds = ((-3.0, -4.0, 0.05), (3.0, 4.0, 10.0 * depth))  # lets a straight line fit with a scale beyond the depth
    start = tuple(np.clip(start, bounds[0], bounds[1]))
    try:
        fitted, _ = scipy.optimize.curve_fit(_decaying, layers, values, p0=start, bounds=bounds)
    except RuntimeError:  # no convergence: the correlations do not follow an exponential
        return None
    residual = values - _decaying(layers, *fitted)
    explained = 1 - residual.var() / values.var()
    fixed_point, scale = float(fitted[0]), float(fitted[2])
    return scale if explained >= LEAST_EXPLAINED and scale <= depth and abs(fixed_point) <= 1 + LEAST_CHANGE else None


def _decaying(layer: NDArray[np.float64], fixed_point: float, amplitude: float, scale: float) -> NDArray[np.float64]:
    curve: NDArray[np.float64] = fixed_point + amplitude * np.exp(-layer / scale)
    return curve

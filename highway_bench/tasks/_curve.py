"""The loss curve of a training run, reduced to the points that are stored."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

CURVE_POINTS = 50


def curve(losses: Sequence[float], points: int = CURVE_POINTS) -> list[tuple[int, float]]:
    """``losses`` by step, as at most ``points`` pairs (last step, mean loss) of equal intervals of steps.

    The curve stops before the first loss that is not finite.
    """
    finite = list(itertools.takewhile(math.isfinite, losses))
    width = max(1, math.ceil(len(finite) / points))
    parts = [finite[start : start + width] for start in range(0, len(finite), width)]
    return [(min((index + 1) * width, len(finite)), sum(part) / len(part)) for index, part in enumerate(parts)]

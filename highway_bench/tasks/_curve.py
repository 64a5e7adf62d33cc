"""The loss curve of a run, as it is stored."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

CURVE_POINTS = 50


def curve(losses: Sequence[float], points: int = CURVE_POINTS) -> list[tuple[int, float]]:
    """The loss curve in at most ``points`` equal stretches: (last step, mean loss); a loss that is not finite ends
    it."""
    finite = list(itertools.takewhile(math.isfinite, losses))
    width = max(1, math.ceil(len(finite) / points))
    stretches = [finite[start : start + width] for start in range(0, len(finite), width)]
    return [(min((number + 1) * width, len(finite)), sum(part) / len(part)) for number, part in enumerate(stretches)]

"""Values of a network or of one of its layers as measurements, and the layers whose values are stored."""

from __future__ import annotations

import math

from highway_bench.tasks.measurement import Measurement

PROFILE_POINTS = 10  # at most this many layers of a profile are stored, equally spaced, besides the first


def profiled_layers(depth: int, first: int = 0) -> list[int]:
    """The layers whose values are stored: ``first``, ``depth``, and the multiples of a step between them, at most
    ``PROFILE_POINTS`` + 1 in all."""
    step = math.ceil(depth / PROFILE_POINTS)
    return sorted({first, *range(step, depth, step), depth})


def measurement(metric: str, value: float, layer: int | None = None) -> Measurement:
    """A value of the network or of one layer. One that is not finite becomes ``None``, and the message has it."""
    finite = math.isfinite(value)
    return Measurement(
        metric=metric,
        value=value if finite else None,
        axis="" if layer is None else "layer",
        index=layer or 0,
        message=None if finite else f"{metric} is {value:g}",
    )

"""How far the first training steps move each layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from highway_bench.analysis.signal import FACTOR, Layer, magnitudes, weights
from highway_bench.results.schema import Status
from highway_bench.tasks._layer_values import measurement, profiled_layers
from highway_bench.tasks.measurement import Measurement
from highway_bench.training.loop import Training


def update_measurements(layers: Sequence[Layer], training: Training) -> Iterator[Measurement]:
    """Train, then give ‖ΔW‖/‖W‖ of every layer over the recipe's steps, and which layers stand still."""
    matrices = [weights(layer) for layer in layers]
    before = [[weight.detach().clone() for weight in layer] for layer in matrices]
    training.run()
    losses = training.history()
    finite = math.isfinite(losses[-1])
    status = Status.OK if finite else Status.DIVERGED
    message = None if finite else f"the loss was not finite at step {len(losses)}"
    moved = [movement(old, new) for old, new in zip(before, matrices, strict=True)]
    known = finite and all(map(math.isfinite, moved))
    still = [layer for layer, value in enumerate(moved, start=1) if value < max(moved) / FACTOR] if known else []
    values = {
        "still_layers": len(still) if known else None,
        "still_first": min(still, default=None),
        "still_last": max(still, default=None),
    }
    for metric, value in values.items():
        yield Measurement(metric=metric, value=value, status=status, message=message)
    for layer in profiled_layers(len(layers), 1):
        yield replace(measurement("update", moved[layer - 1], layer), status=status, message=message)


@torch.no_grad()
def movement(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """‖ΔW‖/‖W‖ in the Euclidean norm over all matrices of a layer; NaN for a layer without matrices."""
    changed = sum(float(magnitudes(new - old).double().square().sum()) for old, new in zip(before, after, strict=True))
    started = sum(float(magnitudes(old).double().square().sum()) for old in before)
    return math.sqrt(changed / started) if started else math.nan

"""Gate state: how open gates are in one forward pass, and how many are saturated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

SATURATED = 0.45  # |σ(a) − ½| above it: the gate is within 0.05 of shut or full, where its slope is below 0.0475


@dataclass(frozen=True)
class GateState:
    """The gates of one layer: the mean of each, and the share of all their values that are saturated."""

    means: tuple[float, ...]
    saturated: float


@torch.no_grad()
def gate_state(activations: Sequence[Tensor]) -> GateState:
    """The state of the gates σ(aᵢ); ``activations`` are the pre-activations aᵢ, all of one shape."""
    gates = torch.sigmoid(torch.stack([one.double() for one in activations])).flatten(1)
    return GateState(tuple(gates.mean(1).tolist()), float(((gates - 0.5).abs() > SATURATED).double().mean()))

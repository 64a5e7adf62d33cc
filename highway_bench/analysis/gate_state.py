"""Gates: how open they are, and how many hardly move, in one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

SATURATED = 0.45  # |σ(a) − ½| above it: the gate is within 0.05 of shut or full, where its slope is below 0.0475


@dataclass(frozen=True)
class GateState:
    """Gates that stand side by side: each one's mean, and the share of all their values that are saturated."""

    means: tuple[float, ...]
    saturated: float


@torch.no_grad()
def gate_state(activations: Sequence[Tensor]) -> GateState:
    """The state of gates σ(aᵢ) with these pre-activations, of one shape."""
    gates = torch.sigmoid(torch.stack([one.double() for one in activations])).flatten(1)
    return GateState(tuple(gates.mean(1).tolist()), float(((gates - 0.5).abs() > SATURATED).double().mean()))

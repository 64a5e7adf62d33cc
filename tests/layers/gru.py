"""torch's GRU as it is: it returns the outputs and its last state."""

from __future__ import annotations

from torch import nn


def layer(width: int) -> nn.Module:
    return nn.GRU(width, width, batch_first=True)

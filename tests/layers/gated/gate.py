"""The gate of a gated convolution."""

from __future__ import annotations

from torch import Tensor, nn


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        return y * self.map(x).sigmoid()

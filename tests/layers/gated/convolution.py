"""A causal depthwise convolution over the steps, times a gate."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from .gate import Gate


class GatedConvolution(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.filter = nn.Conv1d(width, width, 3, groups=width)
        self.gate = Gate(width)

    def forward(self, x: Tensor) -> Tensor:
        past = functional.pad(x.transpose(1, 2), (2, 0))
        return self.gate(self.filter(past).transpose(1, 2), x)


layer = GatedConvolution

"""A Swish with a backward of its own, which keeps the input alone, as memory-efficient networks have it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        return gradients[0] * s * (1 + x * (1 - s))


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(Swish.apply(self.up(x)))


layer = Layer

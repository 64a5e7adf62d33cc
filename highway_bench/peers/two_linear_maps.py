"""A highway layer as most public code writes it: a linear layer each for H and T."""

import torch
from torch import Tensor, nn

from highway_bench.network import Stack
from highway_bench.peers.base import joins_of, linear, register_peer


class TwoLinearMaps(nn.Module):
    """y = T·H + (1 − T)·x with H = relu(W_H x + b_H) and T = σ(W_T x + b_T)."""

    def __init__(self, transform: nn.Linear, gate: nn.Linear) -> None:
        super().__init__()
        self.transform = transform
        self.gate = gate

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.transform(x))
        t = torch.sigmoid(self.gate(x))
        return t * h + (1 - t) * x


@register_peer(
    "two-linear-maps",
    block="highway",
    family="dense",
    summary="a highway layer of two nn.Linear",
    source="arXiv:1505.00387, eq. 3, written out",
)
def two_linear_maps(ours: Stack) -> nn.Module:
    """A linear layer each for H and T."""
    products = (join.maps.product for join in joins_of(ours))
    halves = (zip(one.weight.chunk(2), one.bias.chunk(2), strict=True) for one in products)
    return nn.Sequential(*(TwoLinearMaps(*(linear(weight, bias) for weight, bias in both)) for both in halves))

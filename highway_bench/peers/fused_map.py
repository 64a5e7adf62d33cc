"""A highway layer with one linear map for H and T, as AllenNLP writes it."""

import torch
from torch import Tensor, nn

from highway_bench.network import Stack
from highway_bench.peers.base import joins_of, linear, register_peer


class FusedMap(nn.Module):
    """y = T·relu(h) + (1 − T)·x with (h, t) = Wx + b and T = σ(t)."""

    def __init__(self, maps: nn.Linear) -> None:
        super().__init__()
        self.maps = maps

    def forward(self, x: Tensor) -> Tensor:
        h, t = self.maps(x).chunk(2, dim=-1)
        t = torch.sigmoid(t)
        return t * torch.relu(h) + (1 - t) * x


@register_peer(
    "fused-map",
    block="highway",
    family="dense",
    summary="a highway layer of one nn.Linear for both maps",
    source="AllenNLP, allennlp/modules/highway.py, with T for 1 − T",
)
def fused_map(ours: Stack) -> nn.Module:
    """One linear layer for H and T."""
    products = (join.maps.product for join in joins_of(ours))
    return nn.Sequential(*(FusedMap(linear(one.weight, one.bias)) for one in products))

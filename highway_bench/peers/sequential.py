"""torch's own plain layers: ``nn.Sequential`` of ``nn.Linear`` and ``nn.ReLU``."""

from torch import nn

from highway_bench.network import Stack
from highway_bench.peers.base import joins_of, linear, register_peer


@register_peer(
    "sequential", block="plain", family="dense", summary="nn.Sequential of linear layers and ReLUs", source="torch.nn"
)
def sequential(ours: Stack) -> nn.Module:
    """Linear and ReLU a layer."""
    maps = (join.transform for join in joins_of(ours))
    return nn.Sequential(*(part for one in maps for part in (linear(one.weight, one.bias), nn.ReLU())))

"""A gate for each feature, by the mean over positions."""

from __future__ import annotations

import torch
from torch import Tensor

from highway_bench.blocks import Block, Start, register_block
from highway_bench.families import Gate, InitialBias, Site


@register_block(
    "mean-gate",
    equation="y = T·H(x) + (1 − T)·x, T = σ of the mean over positions of W x + b",
    source="a note",
    summary="one gate for all positions",
    gates=1,
    starts=(
        Start("depth-aware", "b = −max(1, ln L)"),
        Start("published", "b = −2", {"gate_bias": -2.0}),
    ),
)
class MeanGate(Block):
    """y = T·H(x) + (1 − T)·x, with one T for all positions of an item."""

    def __init__(self, site: Site, *, gate_bias: InitialBias = "auto") -> None:
        super().__init__()
        self.maps = site.family.maps(site, gates=(Gate(bias=gate_bias),))
        self.carry = site.family.carry(site)
        self.axis = site.family.feature_axis

    def forward(self, x: Tensor) -> Tensor:
        h, t = self.maps(x)
        positions = [axis for axis in range(1, t.ndim) if axis != t.ndim + self.axis]
        t = t.mean(positions, keepdim=True) if positions else t  # a mean over no axis is one over all
        return torch.lerp(self.carry(x), h, torch.sigmoid(t))

"""The highway layer with one gate: what is not transformed is carried."""

from typing import Literal

import torch
from torch import Tensor

from highway_bench.blocks.base import Block, register_block
from highway_bench.families import Gate, Site


@register_block(
    "highway",
    equation="y = H(x)·T(x) + x·(1 − T(x))",
    source="arXiv:1505.00387, eq. 3",
    summary="coupled gate, C = 1 − T",
    gates=1,
    core=True,
)
class Highway(Block):
    """y = H(x)·T(x) + x·(1 − T(x)) with T(x) = σ(W_T x + b_T): the transform gate also sets the carry gate.

    ``gate_bias`` is where b_T starts; a negative value carries. ``auto`` is −max(1, ln L) for L joins.
    """

    def __init__(self, site: Site, *, gate_bias: float | Literal["auto"] = "auto") -> None:
        super().__init__()
        self.maps = site.family.maps(site, gates=(Gate(bias=gate_bias),))
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        h, t = self.maps(x)
        return torch.lerp(self.carry(x), h, torch.sigmoid(t))

"""LayerNorm scaling: the norm before a branch is divided by the square root of the layer's number."""

import math
from typing import Any

from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm
from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.families import Site


@register_block(
    "norm-scaled",
    equation="y = x + H(norm(x) / √l), norm after the last layer",
    source="arXiv:2502.05795",
    summary="branch's input ÷ √l",
    norms=1,
    leave_norms=1,
    starts=(Start("published", "the factor 1/√l is part of the connection"),),
    evidence="paper",
    group="modern",
    order=13,
)
class NormScaled(Block):
    """y = x + H(norm(x) / √l) in layer l, counted from 1: deeper branches read, and so add, less."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.factor = 1 / math.sqrt(site.layer + 1)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.carry(x) + self.transform(self.factor * self.norm(x))
        return y

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return final_norm(site)

"""LayerScale: each feature of a branch has a learned factor, small at first."""

from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm
from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.families import Site
from highway_bench.families.parts import along


@register_block(
    "layerscale",
    equation="y = x + g ⊙ H(norm(x)), norm after the last layer",
    source="arXiv:2103.17239",
    summary="branch times a learned vector, small at first",
    norms=1,
    leave_norms=1,
    extra_parameters=lambda family, width, joins: joins * width,
    starts=(Start("published", "g = 0.1 up to 18 layers, 1e-5 up to 24, 1e-6 in deeper stacks"),),
    evidence="paper",
    init_state="near-identity",
    group="modern",
    order=8,
)
class LayerScale(Block):
    """y = x + g ⊙ H(norm(x)) with a learned factor g for each feature, smaller at first in deeper stacks."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.axis = site.family.feature_axis
        self.scale = nn.Parameter(torch.full((site.width,), first_scale(site.depth)))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcmul(self.carry(x), along(self.scale, self.axis), self.transform(self.norm(x)))

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return final_norm(site)


def first_scale(depth: int) -> float:
    """The published first value of g in a stack of ``depth`` layers."""
    return 0.1 if depth <= 18 else 1e-5 if depth <= 24 else 1e-6

"""ReZero: a branch that starts switched off, by one scalar."""

import torch
from torch import Tensor, nn

from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.families import Site


@register_block(
    "rezero",
    equation="y = x + α·H(x)",
    source="arXiv:2003.04887",
    summary="branch times a learned scalar, 0 at first",
    extra_parameters=lambda family, width, joins: joins,
    starts=(Start("published", "α = 0"),),
    evidence="paper",
    init_state="identity",
    group="modern",
    order=7,
)
class ReZero(Block):
    """y = x + α·H(x) with a learned scalar α, 0 at first: a stack starts as the identity. Each connection has its own
    α; the published transformer shares one between the two of a layer."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.alpha = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addcmul(self.carry(x), self.alpha, self.transform(x))

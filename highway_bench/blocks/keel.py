"""Keel: a norm after the sum, with the stream times the depth, and a norm before the branch."""

from torch import Tensor, nn

from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.families import Site


@register_block(
    "keel",
    equation="y = norm(L·x + H(norm(x)))",
    source="arXiv:2601.19895, eq. 8",
    summary="norm after the sum, stream × L",
    norms=2,
    extra_parameters=lambda family, width, joins: -family.norm_parameters(width),
    starts=(Start("published", "no special weights; the first layer has the factor 1"),),
    evidence="paper",
    group="modern",
    order=14,
)
class Keel(Block):
    """y = norm_out(α·x + H(norm_in(x))) with α = L, the number of connections.

    In the first layer α is 1, and the first connection of the network has no norm_out.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.alpha = float(site.joins) if site.layer > 0 else 1.0
        self.output_norm = site.family.norm(site.width) if site.index > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.output_norm(self.alpha * self.carry(x) + self.transform(self.norm(x)))
        return y

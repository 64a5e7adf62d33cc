"""The residual connection with a norm before each branch, and one after the last layer."""

from typing import Any

from torch import Tensor, nn

from highway_bench.blocks.base import Block, register_block
from highway_bench.families import Site


@register_block(
    "pre-norm",
    equation="y = x + H(norm(x)), norm after the last layer",
    source="arXiv:2002.04745, §3",
    summary="norm before the branch",
    norms=1,
    leave_norms=1,
    core=True,
    order=5,
)
class PreNorm(Block):
    """y = x + H(norm(x)). The stream itself is normalised only once, after the last layer."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.carry(x) + self.transform(self.norm(x))
        return y

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        """The final norm, which is part of pre-norm; the identity between stages."""
        return site.family.norm(site.width) if site.last else nn.Identity()

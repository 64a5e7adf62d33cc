"""The residual connection with a norm before each branch, and one after the last layer."""

from typing import Any

from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm
from highway_bench.blocks.base import PUBLISHED, SCALED_BRANCH, Block, register_block
from highway_bench.families import Site


@register_block(
    "pre-norm",
    equation="y = x + H(norm(x)), norm after the last layer",
    source="arXiv:2002.04745, §3",
    summary="norm before the branch",
    norms=1,
    leave_norms=1,
    starts=(PUBLISHED, SCALED_BRANCH),
    evidence="paper",
    init_state="base",
    group="core",
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
        """The final norm, which is part of pre-norm."""
        return final_norm(site)

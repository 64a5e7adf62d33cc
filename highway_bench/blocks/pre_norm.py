"""The residual connection with a norm at the branch's entrance, and one at the network's end."""

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
)
class PreNorm(Block):
    """y = x + H(norm(x)). The stream itself is never normalised until the network's end, where one norm stands."""

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
        """The final norm, without which pre-norm is another model; between stages, nothing."""
        return site.family.norm(site.width) if site.last else nn.Identity()

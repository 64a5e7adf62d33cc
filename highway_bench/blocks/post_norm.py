"""The original Transformer's Add & Norm: the sum is normalised."""

from torch import Tensor

from highway_bench.blocks.base import PUBLISHED, SCALED_BRANCH, Block, register_block
from highway_bench.families import Site


@register_block(
    "post-norm",
    equation="y = norm(x + H(x))",
    source="arXiv:1706.03762, §3.1",
    summary="norm after the sum",
    norms=1,
    starts=(PUBLISHED, SCALED_BRANCH),
    evidence="paper",
    group="core",
    order=6,
)
class PostNorm(Block):
    """y = norm(x + H(x)): every layer's output is normalised, including the carried part."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.norm = site.family.norm(site.width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.carry(x) + self.transform(x))
        return y

"""The residual connection: the input is added to its transform."""

from torch import Tensor

from highway_bench.blocks.base import PUBLISHED, SCALED_BRANCH, Block, register_block
from highway_bench.families import Site


@register_block(
    "residual",
    equation="y = x + H(x)",
    source="arXiv:1512.03385, eq. 1",
    summary="identity shortcut",
    starts=(PUBLISHED, SCALED_BRANCH),
    evidence="paper",
    group="core",
    order=4,
)
class Residual(Block):
    """y = x + H(x), without the ReLU that the original paper applies after the sum."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.carry(x) + self.transform(x)
        return y

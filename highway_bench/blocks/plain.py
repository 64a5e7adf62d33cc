"""The baseline: layers in sequence without any connection."""

from torch import Tensor

from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.families import Site


@register_block(
    "plain",
    equation="y = H(x)",
    source="arXiv:1505.00387, eq. 1",
    summary="no shortcut",
    starts=(Start("published", "He or Glorot weights"), Start("depth-aware", "orthogonal weights", init="orthogonal")),
    evidence="paper",
    group="core",
    order=1,
    baseline=True,
)
class Plain(Block):
    """y = H(x): the layer without a connection. The other blocks are compared with it."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(site)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.transform(x)
        return y

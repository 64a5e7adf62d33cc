"""The residual connection of the first residual networks: a ReLU follows the sum."""

import torch
from torch import Tensor

from highway_bench.blocks.base import PUBLISHED, SCALED_BRANCH, Block, register_control
from highway_bench.families import Site


@register_control(
    "residual-relu",
    equation="y = relu(x + H(x))",
    source="arXiv:1512.03385, fig. 2",
    summary="ReLU after the residual sum",
    starts=(PUBLISHED, SCALED_BRANCH),
    evidence="paper",
)
class ResidualRelu(Block):
    """y = relu(x + H(x)), with x and y of one shape: after the first connection the stream has no negative number, so a
    branch that adds a negative one can only shut a feature."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.carry(x) + self.transform(x))

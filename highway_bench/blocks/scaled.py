"""The control of constant scaling: shortcut and branch are multiplied by fixed numbers."""

from torch import Tensor

from highway_bench.blocks.base import Block, register_control
from highway_bench.errors import BadInput
from highway_bench.families import Site


@register_control(
    "scaled",
    equation="y = a·x + b·H(x)",
    source="arXiv:1603.05027, §3.1",
    summary="shortcut and branch scaled by constants",
)
class Scaled(Block):
    """y = a·x + b·H(x), with a = ``skip`` and b = ``branch`` fixed: (1, 1) is the residual connection, (0, 1) the plain
    layer, and (0.5, 0.5) a highway layer whose gate is fixed at one half."""

    def __init__(self, site: Site, *, skip: float = 1.0, branch: float = 1.0) -> None:
        super().__init__()
        for option, value in (("skip", skip), ("branch", branch)):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise BadInput(f"block 'scaled': {option} is a number, not {value!r}")
        self.skip = skip
        self.branch = branch
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.skip * self.carry(x) + self.branch * self.transform(x)
        return y

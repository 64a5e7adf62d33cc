"""A branch that is divided by the square root of the depth, so that the stream's variance stays bounded."""

from typing import Any

from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm, is_number
from highway_bench.blocks.base import Block, Start, register_block, register_variant
from highway_bench.errors import BadInput
from highway_bench.families import Site


@register_block(
    "branch-scaled",
    equation="y = x + H(norm(x)) / √L, norm after the last layer",
    source="arXiv:2310.02244",
    summary="branch ÷ √L",
    norms=1,
    leave_norms=1,
    starts=(Start("published", "the factor 1/√L is part of the connection"),),
    evidence="paper",
    group="modern",
    order=9,
)
class BranchScaled(Block):
    """y = x + H(norm(x)) / L^p for L connections, with p = ``power``, one half by default. The factor is constant,
    unlike a start that divides the weights."""

    def __init__(self, site: Site, *, power: float = 0.5) -> None:
        super().__init__()
        if not is_number(power):
            raise BadInput(f"block 'branch-scaled': power is a number, not {power!r}")
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.factor = float(site.joins**-power)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.carry(x) + self.factor * self.transform(self.norm(x))
        return y

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return final_norm(site)


register_variant(
    "branch-scaled-linear",
    BranchScaled,
    summary="branch ÷ L",
    about={
        "group": "control",
        "equation": "y = x + H(norm(x)) / L, norm after the last layer",
    },
    power=1.0,
)

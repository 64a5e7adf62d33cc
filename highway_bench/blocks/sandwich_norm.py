"""Sandwich norm, also called Peri-LN: a norm before each branch and another one after it."""

from typing import Any, Literal

from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm
from highway_bench.blocks.base import Block, register_block
from highway_bench.blocks.output_norm import OUTPUT_GAINS, output_norm
from highway_bench.families import Site


@register_block(
    "sandwich-norm",
    equation="y = x + norm(H(norm(x))), norm after the last layer",
    source="arXiv:2105.13290; arXiv:2502.02732",
    summary="norms before and after the branch",
    norms=2,
    leave_norms=1,
    starts=OUTPUT_GAINS,
    evidence="code",
    group="modern",
    order=11,
)
class SandwichNorm(Block):
    """y = x + norm_out(H(norm_in(x))): each branch adds unit variance at first, whatever H is.

    ``output_gain`` is the initial gain of norm_out; ``auto`` is 1/√L for L connections.
    """

    def __init__(self, site: Site, *, output_gain: float | Literal["auto"] = 1.0) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.output_norm = output_norm(site, output_gain)
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.carry(x) + self.output_norm(self.transform(self.norm(x)))
        return y

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return final_norm(site)

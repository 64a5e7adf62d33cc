"""Parallel branches: the transforms of a layer read the same normalised input, and their outputs are added at once."""

from typing import Any

from torch import Tensor, nn

from highway_bench.blocks._parts import FirstThen, Twice, final_norm
from highway_bench.blocks.base import PUBLISHED, SCALED_BRANCH, Block, register_block
from highway_bench.families import Family, Site


def _missing_norms(family: Family, width: int, joins: int) -> int:
    layers = joins // len(family.sublayers)
    return -(joins - layers) * family.norm_parameters(width)


@register_block(
    "parallel",
    equation="y = x + H₁(norm(x)) + H₂(norm(x)), norm after the last layer",
    source="arXiv:2204.02311, §2",
    summary="branches of a layer read one norm",
    norms=1,
    leave_norms=1,
    extra_parameters=_missing_norms,
    starts=(PUBLISHED, SCALED_BRANCH),
    evidence="paper",
    init_state="mix",
    sublayers=2,
    group="modern",
    order=15,
)
class ParallelBranches(Block):
    """y = x + Σ H_i(norm(x)), the sum being over the transforms of a layer, which share one norm.

    The state is the sum so far and the layer's normalised input. In a family with one transform a layer this is
    ``pre-norm``.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width) if site.sublayer == 1 else None
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)

    def forward(self, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x, normed = state
        if self.norm is not None:
            normed = self.norm(x)
        return self.carry(x) + self.transform(normed), self.carry(normed)

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Twice()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return FirstThen(final_norm(site))

"""LAuReL with a low-rank map: the carried path has a learned correction of small rank."""

from typing import Any

from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm
from highway_bench.blocks.base import SCALED_BRANCH, Block, Start, register_block
from highway_bench.families import Site

RANK = 8


@register_block(
    "laurel-lr",
    equation="y = H(norm(x)) + x + B A x, norm after the last layer",
    source="arXiv:2411.07501",
    summary="carried path with a low-rank map",
    norms=1,
    leave_norms=1,
    extra_parameters=lambda family, width, joins: joins * 2 * width * RANK,
    extra_flops=lambda family, width, joins: joins * 4 * width * RANK,
    starts=(Start("published", "B = 0"), SCALED_BRANCH),
    evidence="secondary",
    init_state="base",
    group="modern",
    order=19,
)
class LaurelLr(Block):
    """y = H(norm(x)) + x + B A x with A: width → 8 features and B back, position-wise and without bias; B = 0 at first.

    The paper leaves the start of A and B open; A is Glorot's here.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.inward = site.family.affine(site.width, RANK, bias=False)
        self.outward = site.family.affine(RANK, site.width, bias=False)
        nn.init.zeros_(self.outward.weight)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        carried = self.carry(x)
        y: Tensor = self.transform(self.norm(x)) + carried + self.outward(self.inward(carried))
        return y

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return final_norm(site)

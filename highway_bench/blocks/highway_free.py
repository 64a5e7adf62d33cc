"""The general highway layer: transform gate and carry gate are independent."""

from typing import Literal

import torch
from torch import Tensor

from highway_bench.blocks.base import Block, register_block
from highway_bench.families import Gate, Site


@register_block(
    "highway-free",
    equation="y = H(x)·T(x) + x·C(x)",
    source="arXiv:1505.00387, eq. 2",
    summary="own carry gate",
    gates=2,
    core=True,
    order=3,
)
class HighwayFree(Block):
    """y = H(x)·T(x) + x·C(x) with T(x) = σ(W_T x + b_T) and C(x) = σ(W_C x + b_C).

    T + C may exceed 1, so the stream can grow. ``gate_bias`` is the initial b_T, ``carry_bias`` the initial b_C;
    ``auto`` is ∓max(1, ln L) for L connections, so that T + C is about 1 at the start.
    """

    def __init__(
        self, site: Site, *, gate_bias: float | Literal["auto"] = "auto", carry_bias: float | Literal["auto"] = "auto"
    ) -> None:
        super().__init__()
        self.maps = site.family.maps(site, gates=(Gate(bias=gate_bias), Gate(bias=carry_bias, carries=True)))
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        h, t, c = self.maps(x)
        y: Tensor = h * torch.sigmoid(t) + self.carry(x) * torch.sigmoid(c)
        return y

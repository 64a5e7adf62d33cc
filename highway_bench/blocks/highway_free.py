"""The general highway layer: transform gate and carry gate are independent."""

import torch
from torch import Tensor

from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.families import Gate, InitialBias, Site


@register_block(
    "highway-free",
    equation="y = H(x)·T(x) + x·C(x)",
    source="arXiv:1505.00387, eq. 2",
    summary="own carry gate",
    gates=2,
    starts=(
        Start("depth-aware", "b_T = −max(1, ln L) = −b_C"),
        Start("published", "b_T = −2 = −b_C", {"gate_bias": -2.0, "carry_bias": 2.0}),
    ),
    evidence="paper",
    init_state="near-identity",
    group="core",
    order=3,
)
class HighwayFree(Block):
    """y = H(x)·T(x) + x·C(x) with T(x) = σ(W_T x + b_T) and C(x) = σ(W_C x + b_C).

    T + C may exceed 1, so the stream can grow. ``gate_bias`` is the initial b_T, ``carry_bias`` the initial b_C;
    ``auto`` is ∓max(1, ln L) for L connections, so that T + C is about 1 at the start.
    """

    def __init__(self, site: Site, *, gate_bias: InitialBias = "auto", carry_bias: InitialBias = "auto") -> None:
        super().__init__()
        self.maps = site.family.maps(site, gates=(Gate(bias=gate_bias), Gate(bias=carry_bias, carries=True)))
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        h, t, c = self.maps(x)
        y: Tensor = h * torch.sigmoid(t) + self.carry(x) * torch.sigmoid(c)
        return y

"""Stochastic depth: ``highway-bench check stochastic-depth --plugin examples/stochastic_depth.py``."""

from __future__ import annotations

import torch
from torch import Tensor

from highway_bench.blocks import PUBLISHED, SCALED_BRANCH, Block, register_block
from highway_bench.families import Site


@register_block(
    "stochastic-depth",
    equation="y = x + b·H(x), b = 1 with probability p_l = 1 − l/L·(1 − p), else 0; p_l·H(x) in evaluation",
    source="arXiv:1603.09382, eq. 2, 4 and 5",
    summary="branches left out at random",
    vmap=False,
    starts=(PUBLISHED, SCALED_BRANCH),
)
class StochasticDepth(Block):
    """y = x + b·H(x), with a b for each item and connection. ``last`` is the p of the last connection."""

    def __init__(self, site: Site, *, last: float = 0.5) -> None:
        super().__init__()
        self.kept = 1 - site.index / site.joins * (1 - last)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        h = self.transform(x)
        if self.training:
            shape = [len(x)] + [1] * (x.ndim - 1)
            h = h * (torch.rand(shape, device=x.device) < self.kept).to(x.dtype)
        else:
            h = self.kept * h
        y: Tensor = self.carry(x) + h
        return y

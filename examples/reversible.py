"""Two reversible streams: ``highway-bench check reversible --plugin examples/reversible.py``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.blocks import PUBLISHED, SCALED_BRANCH, Block, register_block
from highway_bench.families import Family, Site

State = tuple[Tensor, Tensor]


def half(site: Site) -> Site:
    """The same site with half the features."""
    return replace(site, width=site.width // 2, in_width=site.in_width // 2)


def parameters(family: Family, width: int, joins: int) -> int:
    """Parameters of the transforms at half the width, minus those at the whole."""
    parts = family.sublayers
    more = sum(part.transform_parameters(width // 2) - part.transform_parameters(width) for part in parts)
    return joins // len(parts) * more


def flops(family: Family, width: int, joins: int, positions: int) -> int:
    """The same of their FLOP, at one of ``positions``."""
    parts = family.sublayers
    more = sum(part.transform_flops(width // 2, positions) - part.transform_flops(width, positions) for part in parts)
    return joins // len(parts) * more // positions


class Halves(nn.Module):
    """x → its first and its second half of the features."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> State:
        first, second = x.chunk(2, self.axis)
        return first, second


class Whole(Halves):
    """The halves → x."""

    def forward(self, state: State) -> Tensor:  # type: ignore[override]
        return torch.cat(state, self.axis)


@register_block(
    "reversible",
    equation="(a, b) → (b, a + H(b)), with half of the features each",
    source="arXiv:1707.04585, eq. 8",
    summary="two reversible streams",
    extra_parameters=parameters,
    extra_flops=flops,
    width_step=2,
    starts=(PUBLISHED, SCALED_BRANCH),
)
class Reversible(Block):
    """(a, b) → (b, a + H(b)): the inputs follow from the outputs, a = b′ − H(a′) and b = a′."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(half(site))
        self.carry = site.family.carry(half(site))

    def forward(self, state: State) -> State:
        first, second = state
        return self.carry(second), self.carry(first) + self.transform(second)

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Halves(site.family.feature_axis)

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return Whole(site.family.feature_axis)

"""A shortcut over two layers, as in the first residual networks."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from highway_bench.blocks import PUBLISHED, SCALED_BRANCH, Block, register_block
from highway_bench.families import Site

State = tuple[Tensor, Tensor]


class Open(nn.Module):
    """x → (x, x): the stream, and what the next shortcut carries."""

    def forward(self, x: Tensor) -> State:
        return x, x


class Close(nn.Module):
    """The stream; after half a shortcut, with what is carried."""

    def __init__(self, add: bool) -> None:
        super().__init__()
        self.add = add

    def forward(self, state: State) -> Tensor:
        x, carried = state
        return x + carried if self.add else x


@register_block(
    "two-layer-shortcut",
    equation="y = x + H₂(H₁(x)), over two layers",
    source="arXiv:1512.03385, eq. 1",
    summary="a shortcut over two layers",
    starts=(PUBLISHED, SCALED_BRANCH),
)
class TwoLayerShortcut(Block):
    """The first of two connections gives (H(x), x), the second (s, s) with s = H(x) + what the first carried."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.closes = (site.index - site.first * site.sublayers) % 2 == 0

    def forward(self, state: State) -> State:
        x, carried = state
        h, carried = self.transform(x), self.carry(carried)
        return (h + carried, h + carried) if self.closes else (h, carried)

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Open()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return Close(add=(site.index - site.first * site.sublayers) % 2 == 1)

"""Value residual: every attention averages its values with those of the first one."""

from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import FirstThen, final_norm
from highway_bench.blocks.base import PUBLISHED, SCALED_BRANCH, Block, register_block
from highway_bench.families import Site
from highway_bench.families.attention import SelfAttention


@register_block(
    "value-residual",
    equation="y = x + H(norm(x)), V_l ← ½V₁ + ½V_l in attention, norm after the last layer",
    source="arXiv:2410.17897; Zcchill/Value-Residual-Learning",
    summary="values averaged with the first layer's",
    norms=1,
    leave_norms=1,
    starts=(PUBLISHED, SCALED_BRANCH),
    evidence="paper",
    needs="attention",
    group="modern",
    order=25,
)
class ValueResidual(Block):
    """y = x + H(norm(x)) as in ``pre-norm``, where attention has the values ½V₁ + ½V_l in place of V_l.

    V₁ (batch, steps, width) are the values of the first attention that gets the block's state. They are a part of the
    state, (x, V₁), and are carried as the stream is. A transform without attention only passes them on.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.first: list[Tensor] = []  # V₁, while the transform runs
        if isinstance(self.transform, SelfAttention):
            self.transform.inward.register_forward_hook(self.mix)

    def forward(self, state: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor | None]:
        x, first = state
        self.first.extend([] if first is None else [self.carry(first)])
        try:
            y = self.carry(x) + self.transform(self.norm(x))
            return y, self.first[0] if self.first else None
        finally:
            self.first.clear()

    def mix(self, inward: nn.Module, inputs: tuple[Tensor, ...], projected: Tensor) -> Tensor:
        """Queries, keys and values (…, 3 · width) with the average of V₁ and these values; the first values are V₁."""
        query, key, value = projected.chunk(3, dim=-1)
        if not self.first:
            self.first.append(value)
            return projected
        return torch.cat((query, key, (self.first[0] + value) / 2), dim=-1)

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return WithoutValues()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return FirstThen(final_norm(site))


class WithoutValues(nn.Module):
    """x → (x, none yet)."""

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return x, None

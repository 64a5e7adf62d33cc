"""The transformer layer: attention, then the feed-forward branch. The block connects each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from highway_bench.families.attention import Attention
from highway_bench.families.base import Family, Transform, register_family
from highway_bench.families.init import Activation
from highway_bench.families.mlp import Mlp


@register_family(
    "transformer",
    transform="H₁ = attention, H₂ = mlp",
    summary="attention then mlp, each joined",
    source="arXiv:1706.03762, fig. 1",
)
@dataclass(frozen=True, kw_only=True)
class Transformer(Family):
    """Two connections a layer on sequences (batch, steps, width): self-attention, then the feed-forward branch."""

    kind = "sequence"
    order = 8
    order_blind = True

    heads: int = 4
    causal: bool = False
    activation: Activation = "relu"
    expansion: int = 4

    @property
    def width_step(self) -> int:
        return self.heads

    @cached_property
    def sublayers(self) -> tuple[Transform, ...]:
        return (
            Attention(heads=self.heads, causal=self.causal, init=self.init),
            Mlp(activation=self.activation, expansion=self.expansion, init=self.init),
        )

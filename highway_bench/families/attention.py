"""Multi-head self-attention as a transform: the first sublayer of a transformer layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from highway_bench.families._site import Site
from highway_bench.families.base import Transform, register_family
from highway_bench.families.init import init_map_
from highway_bench.families.padding import ReadsLengths


class SelfAttention(ReadsLengths):
    """softmax(QKᵀ/√(width/heads)) V by head, then the output map; (batch, steps, in) → (batch, steps, width).

    Where the network sets the items' ``lengths``, no step attends to padding.
    """

    def __init__(self, inputs: int, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.inward = nn.Linear(inputs, 3 * width)
        self.outward = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        by_head = self.inward(x).unflatten(-1, (3, self.heads, -1)).transpose(-4, -2)  # (…, heads, 3, steps, d/heads)
        query, key, value = by_head.unbind(-3)
        mask = None  # causal attention needs none: padding comes after an item's own steps
        if self.lengths is not None and not self.causal:
            mask = (torch.arange(x.shape[-2]) < self.lengths[:, None, None, None]).to(x.device)  # (batch, 1, 1, steps)
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=self.causal)
        out: Tensor = self.outward(mixed.transpose(-3, -2).flatten(-2))
        return out


@register_family(
    "attention",
    transform="H(x) = softmax(QKᵀ/√d_h) V W_O",
    summary="multi-head self-attention",
    source="arXiv:1706.03762, eq. 1",
)
@dataclass(frozen=True, kw_only=True)
class Attention(Transform):
    """H(x) = multi-head scaled-dot-product self-attention over sequences (batch, steps, width).

    With ``causal``, a step attends to itself and earlier steps; otherwise to the whole sequence.
    """

    kind = "sequence"
    order = 7
    order_blind = True

    heads: int = 4
    causal: bool = False

    @property
    def width_step(self) -> int:
        return self.heads

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        module = SelfAttention(site.in_width, site.width, self.heads, self.causal)
        query, key, value = module.inward.weight.split(site.width)  # each by its own fan
        for part, part_gain in ((query, 1.0), (key, 1.0), (value, inner_gain)):
            init_map_(part.data, "identity", self.init, gain=part_gain)
        init_map_(module.outward.weight, "identity", self.init, gain=self.last_gain(site, gain))
        nn.init.zeros_(module.inward.bias)
        nn.init.zeros_(module.outward.bias)
        return module

    def transform_parameters(self, width: int) -> int:
        return 4 * (width * width + width)

    def transform_flops(self, width: int, positions: int) -> int:
        return 8 * width * width * positions + 4 * width * positions * positions

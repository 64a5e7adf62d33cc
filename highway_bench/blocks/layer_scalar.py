"""A scalar a layer: sandwich norm, and each layer's output is multiplied by one learned number, as in Gemma 4."""

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import final_norm
from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.blocks.output_norm import output_norm
from highway_bench.families import Site


@register_block(
    "layer-scalar",
    equation="y = s·(x + norm(H(norm(x)))), one s a layer, norm after the last layer",
    source="Gemma 4; huggingface/transformers",
    summary="sandwich norm, stream times a scalar",
    norms=2,
    leave_norms=1,
    extra_parameters=lambda family, width, joins: joins // len(family.sublayers),
    starts=(
        Start("published", "s and gains 1"),
        Start("depth-aware", "s = 1, gain of the output norm 1/√L", {"output_gain": "auto"}),
    ),
    evidence="paper",
    group="modern",
    order=23,
)
class LayerScalar(Block):
    """y = x + norm_out(H(norm_in(x))) as in ``sandwich-norm``; the last connection of each layer gives s·y instead.

    s is a learned scalar that begins at 1. x and y have one shape. The norm after the last layer undoes the last s but
    for its ε. ``output_gain`` is the initial gain of norm_out; ``auto`` is 1/√L for L connections.
    """

    def __init__(self, site: Site, *, output_gain: float | Literal["auto"] = 1.0) -> None:
        super().__init__()
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.output_norm = output_norm(site, output_gain)
        self.carry = site.family.carry(site)
        self.scale = nn.Parameter(torch.tensor(1.0)) if site.sublayer == site.sublayers else None

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.carry(x) + self.output_norm(self.transform(self.norm(x)))
        return y if self.scale is None else self.scale * y

    def scalars(self) -> Iterable[nn.Parameter]:
        return () if self.scale is None else (self.scale,)

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return final_norm(site)

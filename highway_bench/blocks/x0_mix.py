"""A mix of the stream with the first layer's input, by two learned scalars a layer."""

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import FirstThen, Twice, final_norm
from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.errors import BadInput
from highway_bench.families import Site

GRADED = ((1.15, 1.05), (0.20, 0.05))  # r and u, from the first layer to the last


@register_block(
    "x0-mix",
    equation="y = x̂ + H(norm(x̂)), x̂ = r·x + u·x₀, norm after the last layer",
    source="karpathy/nanochat, gpt.py",
    summary="stream mixed with the network's input",
    norms=1,
    leave_norms=1,
    extra_parameters=lambda family, width, joins: 2 * (joins // len(family.sublayers)),
    starts=(
        Start("published", "r = 1, u = 0"),
        Start("depth-aware", "r from 1.15 down to 1.05, u from 0.20 down to 0.05", {"mix": "graded"}),
    ),
    evidence="paper",
    init_state="base",
    group="modern",
    order=17,
)
class X0Mix(Block):
    """x̂ = r·x + u·x₀ at the first connection of each layer, with learned scalars r and u; then y = x̂ + H(norm(x̂)).

    x₀ is the input of the first layer. ``mix`` is the start: ``carry`` is r = 1 and u = 0, which equals ``pre-norm``;
    ``graded`` is linear in the layer, as in nanochat.
    """

    def __init__(self, site: Site, *, mix: Literal["carry", "graded"] = "carry") -> None:
        super().__init__()
        if mix not in ("carry", "graded"):
            raise BadInput(f"block 'x0-mix': mix is carry or graded, not {mix!r}")
        self.norm = site.family.norm(site.in_width)
        self.transform = site.family.transform(site)
        self.carry = site.family.carry(site)
        self.mixes = site.sublayer == 1
        if self.mixes:
            part = site.layer / max(1, site.depth - 1)
            r, u = (first + part * (last - first) for first, last in GRADED) if mix == "graded" else (1.0, 0.0)
            self.r, self.u = nn.Parameter(torch.tensor(r)), nn.Parameter(torch.tensor(u))

    def forward(self, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x, first = state
        if self.mixes:
            x = self.r * x + self.u * first
        return self.carry(x) + self.transform(self.norm(x)), self.carry(first)

    def scalars(self) -> Iterable[nn.Parameter]:
        return (self.r,) if self.mixes else ()

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Twice()

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return FirstThen(final_norm(site))

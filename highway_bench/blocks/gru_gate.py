"""The gate of GTrXL: stream and branch are joined by a gated recurrent unit."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import is_number
from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.errors import BadInput
from highway_bench.families import Site
from highway_bench.families.parts import OwnGate


@register_block(
    "gru-gate",
    equation="y = (1 − z)·x + z·tanh(W_g u + U_g (r·x)), u = relu(H(norm(x))), r = σ(W_r u + U_r x), "
    "z = σ(W_z u + U_z x − b)",
    source="arXiv:1910.06764, §3.2",
    summary="gated recurrent unit as the connection",
    norms=1,
    extra_parameters=lambda family, width, joins: joins * (6 * width * width + width),
    extra_flops=lambda family, width, joins: joins * 12 * width * width,
    starts=(
        Start("published", "b = 2"),
        Start("depth-aware", "b = max(2, ln L)", {"gate_bias": "auto"}),
    ),
    evidence="paper",
    init_state="near-identity",
    group="modern",
    order=16,
)
class GruGate(Block):
    """y = (1 − z)·x + z·h with u = relu(H(norm(x))), r = σ(W_r u + U_r x), z = σ(W_z u + U_z x − b) and
    h = tanh(W_g u + U_g (r·x)).

    ``gate_bias`` is the initial b; −b is learned, as the bias of the gate z. ``auto`` is max(2, ln L) for L
    connections. The six maps are position-wise and have no bias.
    """

    def __init__(self, site: Site, *, gate_bias: float | Literal["auto"] = 2.0) -> None:
        super().__init__()
        family, width = site.family, site.width
        if gate_bias == "auto":
            gate_bias = max(2.0, math.log(site.joins))
        elif not is_number(gate_bias):
            raise BadInput(f"a gate's bias is a number or auto, not {gate_bias!r}")
        self.norm = family.norm(site.in_width)
        self.transform = family.transform(site)
        self.carry = family.carry(site)
        self.of_branch = nn.ModuleList(family.affine(width, width, bias=False) for _ in range(3))
        self.of_stream = nn.ModuleList(family.affine(width, width, bias=False) for _ in range(3))
        self.update_gate = OwnGate(width, -float(gate_bias), family.feature_axis)

    def forward(self, x: Tensor) -> Tensor:
        u, x = torch.relu(self.transform(self.norm(x))), self.carry(x)
        branch = [one(u) for one in self.of_branch]
        reset, update, candidate = self.of_stream
        r = torch.sigmoid(branch[0] + reset(x))
        z = torch.sigmoid(self.update_gate(branch[1] + update(x)))
        h = torch.tanh(branch[2] + candidate(r * x))
        return torch.lerp(x, h, z)

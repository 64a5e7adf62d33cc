"""The control of shortcut-only gating: a gate closes the carried path and leaves the branch as it is."""

import torch
from torch import Tensor

from highway_bench.blocks.base import Block, register_control
from highway_bench.families import Gate, InitialBias, Site


@register_control(
    "shortcut-gate",
    equation="y = H(x) + (1 − T(x))·x",
    source="arXiv:1603.05027, §3.2",
    summary="gate on the shortcut alone",
    gates=1,
)
class ShortcutGate(Block):
    """y = H(x) + (1 − T(x))·x with T(x) = σ(W_T x + b_T): close to the residual connection while the gate is shut.

    ``gate_bias`` is the initial b_T; ``auto`` is −max(1, ln L) for L connections.
    """

    def __init__(self, site: Site, *, gate_bias: InitialBias = "auto") -> None:
        super().__init__()
        self.maps = site.family.maps(site, gates=(Gate(bias=gate_bias),))
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        h, t = self.maps(x)
        y: Tensor = h + torch.sigmoid(-t) * self.carry(x)
        return y

"""The highway layer with one gate: the carry gate is one minus the transform gate."""

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from highway_bench.blocks.base import Block, Start, register_block
from highway_bench.errors import BadInput
from highway_bench.families import Gate, InitialBias, Site


@register_block(
    "highway",
    equation="y = H(x)·T(x) + x·(1 − T(x))",
    source="arXiv:1505.00387, eq. 3",
    summary="coupled gate, C = 1 − T",
    gates=1,
    starts=(
        Start("depth-aware", "b_T = −max(1, ln L)"),
        Start("published", "b_T = −2; in convolutional networks −L/10, at most −1", {"gate_bias": "published"}),
    ),
    evidence="paper",
    init_state="near-identity",
    group="core",
    order=2,
)
class Highway(Block):
    """y = H(x)·T(x) + x·(1 − T(x)) with T(x) = σ(W_T x + b_T): the transform gate also sets the carry gate.

    ``gate_bias`` is the initial b_T; a negative value favours the carried input. ``auto`` is −max(1, ln L) for L
    connections, ``published`` the paper's choice (see ``Gate``). With ``recompute`` only x is saved for the backward
    pass, which computes H and T again.
    """

    def __init__(self, site: Site, *, gate_bias: InitialBias = "auto", recompute: bool = False) -> None:
        super().__init__()
        if not isinstance(recompute, bool):
            raise BadInput(f"recompute is true or false, not {recompute!r}")
        self.recompute = recompute
        self.maps = site.family.maps(site, gates=(Gate(bias=gate_bias),))
        self.carry = site.family.carry(site)

    def forward(self, x: Tensor) -> Tensor:
        if self.recompute and torch.is_grad_enabled():
            y: Tensor = checkpoint(self.joined, x, use_reentrant=False)
            return y
        return self.joined(x)

    def joined(self, x: Tensor) -> Tensor:
        """y, as autograd sees it: H, T and x are saved, three numbers a feature."""
        h, t = self.maps(x)
        if torch.compiler.is_compiling():  # of lerp, the compiler saves H − x and a mask, and its loops are slower
            gate = torch.sigmoid(t)
            y: Tensor = gate * h + (1 - gate) * self.carry(x)
            return y
        return torch.lerp(self.carry(x), h, torch.sigmoid(t))

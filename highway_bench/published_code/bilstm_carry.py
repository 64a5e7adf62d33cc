"""The second fault of the public highway BiLSTM alone: its gate is trained, and what it carries is no input."""

from __future__ import annotations

import torch
from torch import Tensor

from highway_bench.blocks.base import Block, blocks, register_control
from highway_bench.families import Gate, Site

NAME = "bilstm-carry-fault"


class CarryFault(Block):
    """y = H(x)·σ(a) + a·(1 − σ(a)), a = Wx + b. The carried path has the gate's pre-activation a instead of x."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.maps = site.family.maps(site, gates=(Gate(bias=0.0),))

    def forward(self, x: Tensor) -> Tensor:
        h, a = self.maps(x)
        return torch.lerp(a, h, torch.sigmoid(a))


def register() -> None:
    """Register the block, unless it is registered."""
    if NAME not in blocks:
        register_control(
            NAME,
            equation="y = H(x)·σ(a) + a·(1 − σ(a)), a = Wx + b",
            source="bamtercelboo/pytorch_Highway_Networks, models/model_HBiLSTM.py",
            summary="the public highway BiLSTM with its fault in the carry alone",
            evidence="code",
            gates=1,
        )(CarryFault)


def unregister() -> None:
    """Undo ``register``."""
    blocks.unregister(NAME)


register()

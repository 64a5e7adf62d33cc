"""The public highway BiLSTM with the two faults of its layer: a control, which the contract of blocks refuses."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from highway_bench.blocks.base import Block, blocks, register_control
from highway_bench.families import Site

NAME = "bilstm-as-published"


class AsPublished(Block):
    """y = H(x)·σ(a) + a·(1 − σ(a)), a = Wx + b with new random W and b in every call.

    The forward pass creates the gate, so no optimiser holds it and it is never trained. The carried path has the gate's
    pre-activation instead of the layer's input.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(site)
        self.width = site.width

    def forward(self, x: Tensor) -> Tensor:
        a = nn.Linear(self.width, self.width, device=x.device, dtype=x.dtype)(x)
        return torch.lerp(a, self.transform(x), torch.sigmoid(a))


def register() -> None:
    """Register the block, unless it is registered. It has no parameters but those of H."""
    if NAME not in blocks:
        register_control(
            NAME,
            equation="y = H(x)·σ(a) + a·(1 − σ(a)), a = Wx + b, W and b new in every call",
            source="bamtercelboo/pytorch_Highway_Networks, models/model_HBiLSTM.py",
            summary="the public highway BiLSTM with its two faults",
            evidence="code",
            vmap=False,
            compile=False,
        )(AsPublished)


def unregister() -> None:
    """Undo ``register``."""
    blocks.unregister(NAME)


register()

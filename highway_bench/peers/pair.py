"""Our network and a peer with its weights, on one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from highway_bench.cell import Cell
from highway_bench.network import Stack
from highway_bench.peers.known import peers
from highway_bench.peers.step import NetworkStep, difference
from highway_bench.tasks.base import Skip
from highway_bench.tasks.from_cell import cell_family, cell_stack
from highway_bench.tasks.modes import EXECUTION_MODES

INPUT_SEED = 0


@dataclass(frozen=True)
class PeerPair:
    """Two networks that compute the same, and how far they differ.

    ``our_step`` and ``peer_step`` are what is timed.
    """

    our_step: NetworkStep
    peer_step: NetworkStep
    difference: float

    @classmethod
    def of(cls, cell: Cell) -> PeerPair:
        """Our network of ``cell``, and the peer that its recipe names.

        Raises ``PeerDiffers`` where outputs or gradients are not equal, and ``Skip`` where the peer's package is not
        installed, or the peer has no such mode.
        """
        peer = peers.get(cell.recipe["peer"])
        if peer.version is None:
            raise Skip(f"{peer.package} is not installed: pip install highway-bench[peers]")
        EXECUTION_MODES[cell.mode].check(cell)
        if EXECUTION_MODES[cell.mode].compiles and not peer.compiles:
            raise Skip(f"torch.compile makes no graph of {peer.name}")
        ours = cell_stack(cell)
        theirs = peer.build(cast(Stack, ours)).to(cell.device)
        x, cotangent = example(cell)
        found = difference(ours, theirs, x, cotangent)
        return cls(NetworkStep(ours, cell, x, cotangent), NetworkStep(theirs, cell, x, cotangent), found)

    @property
    def network(self) -> nn.Module:
        """Our network."""
        return self.our_step.network


def example(cell: Cell) -> tuple[Tensor, Tensor]:
    """A standard-normal input, and a gradient of the output of the same shape."""
    source = torch.Generator().manual_seed(INPUT_SEED)
    x = cell_family(cell).example(cell.batch_size, cell.width, seq_len=cell.seq_len, generator=source)
    return x.to(cell.device), torch.randn(x.shape, generator=source).to(cell.device)

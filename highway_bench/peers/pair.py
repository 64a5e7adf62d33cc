"""Our network and a peer with its weights: one step of each on the same input, and whether the two compute the same."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import torch
from torch import Tensor, nn

from highway_bench.cell import Cell
from highway_bench.measure.device import synchronise
from highway_bench.measure.memory import saved_activations
from highway_bench.network import Stack
from highway_bench.peers import implementations  # noqa: F401 - it registers the peers
from highway_bench.peers.base import peers
from highway_bench.tasks.base import Skip
from highway_bench.tasks.from_cell import cell_family, cell_stack
from highway_bench.tasks.modes import EXECUTION_MODES

TOLERANCE = 1e-4  # of float32, relative to the largest value: ten layers and orders of summation explain a part of it
INPUT_SEED = 0


class PeerDiffers(RuntimeError):
    """A peer's outputs or gradients are not ours, so its time would be that of other work."""


class NetworkStep:
    """The step of ``network`` that ``cell`` names, on ``x``: its phase in its mode.

    The phase ``forward-backward`` computes the gradient of every parameter, for the gradient ``cotangent`` of the
    output. A compiled network compiles at the first step.
    """

    def __init__(self, network: nn.Module, cell: Cell, x: Tensor, cotangent: Tensor) -> None:
        self.network = network.train(cell.phase != "forward")
        self.cell, self.x, self.cotangent = cell, x, cotangent
        self.parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        self.call = EXECUTION_MODES[cell.mode].call(network)

    def of_copy(self) -> NetworkStep:
        """The same step of a copy of the network, whose weights lie elsewhere in memory.

        cuDNN needs the weights of a recurrent layer in one buffer, which a copy loses.
        """
        network = copy.deepcopy(self.network)
        for module in network.modules():
            if isinstance(module, nn.RNNBase):
                module.flatten_parameters()
        return NetworkStep(network, self.cell, self.x, self.cotangent)

    @cached_property
    def launch(self) -> Callable[[], None]:
        """The step, which may still run on the device when the call returns."""
        phase = self._forward if self.cell.phase == "forward" else self._forward_backward
        return EXECUTION_MODES[self.cell.mode].step(phase, self.x.device)

    def __call__(self) -> None:
        """The step, synchronised at its end."""
        self.launch()
        synchronise(self.x.device)

    @property
    def saved(self) -> int:
        """Bytes that autograd saves between forward and backward, without parameters and the input."""
        return saved_activations(lambda: self.call(self.x), exclude=(self.network, self.x))

    def _forward(self) -> None:
        with torch.no_grad():
            self.call(self.x)

    def _forward_backward(self) -> None:
        torch.autograd.grad(self.call(self.x), self.parameters, self.cotangent)


def difference(ours: nn.Module, theirs: nn.Module, x: Tensor, cotangent: Tensor) -> float:
    """The largest difference of the outputs, and of the input's gradients, relative to our largest value.

    Raises ``PeerDiffers`` where it is above ``TOLERANCE``.
    """
    pairs = zip(*(outputs_and_gradient(network, x, cotangent) for network in (ours, theirs)), strict=True)
    found = [relative(one, other) for one, other in pairs]
    if not max(found) <= TOLERANCE:  # also where one is NaN
        raise PeerDiffers(f"its outputs differ by {found[0]:.2g} of the largest, its gradients by {found[1]:.2g}")
    return max(found)


def outputs_and_gradient(network: nn.Module, x: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    """The network's outputs for ``x``, and the gradient by ``x``."""
    x = x.detach().clone().requires_grad_()
    y = network(x)
    (gradient,) = torch.autograd.grad(y, x, cotangent)
    return y.detach(), gradient


def relative(one: Tensor, other: Tensor) -> float:
    """The largest difference over the largest value of ``one``; infinite for another shape."""
    return float((one - other).abs().max() / one.abs().max()) if one.shape == other.shape else float("inf")


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

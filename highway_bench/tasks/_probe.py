"""Probe: an untrained network and one batch, from which the task ``propagation`` takes its measurements.

A cell without a data set probes the bare stack with a standard-normal input (``example_batch``). A cell with a data set
probes the whole network with a training batch (``training_of``, ``data_batch``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from highway_bench.analysis.mixing import BATCH_NORMS
from highway_bench.analysis.signal import Layer, SignalProfile, profile, weights
from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.network import Stack
from highway_bench.tasks._gated_layers import GateMaps
from highway_bench.tasks.from_cell import cell_device, cell_dtype, cell_family, dataset_options, recipe_from
from highway_bench.training.evaluation import loss_of, to_device
from highway_bench.training.loop import Training

Loss = Callable[[], Tensor]


@dataclass
class Probe:
    """An untrained network, and one batch as its input."""

    network: nn.Module
    stack: Stack  # the network's only stack, or the network itself
    layers: list[Layer]  # the connections of each layer, one for each sublayer
    inputs: Tensor
    loss: Loss  # one forward pass of the batch: a scalar
    params: int
    real: Tensor | None  # (items, steps): False at padding; None where nothing is padding
    generator: torch.Generator  # of random directions
    training: Training | None = None  # of a cell with a data set, not yet started

    @property
    def items(self) -> int:
        return len(self.inputs)

    def profile(self) -> SignalProfile:
        """Sizes of signal and gradient by layer, from one forward and backward pass."""
        return profile(self.layers, self.loss, self.items, self.real)

    def stream(self) -> Tensor:
        """x₀: the input of the stack."""
        if self.network is self.stack:
            return self.inputs
        captured: list[Tensor] = []
        hook = self.stack.register_forward_pre_hook(lambda _, inputs: captured.append(inputs[0].detach()))
        with hook, torch.no_grad():
            self.network(self.inputs)
        return captured[0]

    def unpadded_parts(self, x: Tensor) -> list[Tensor]:
        """The batch ``x`` of the stream in parts without padding: itself, or its items, each cut to its length."""
        if self.real is None:
            return [x]
        return [item[None, :steps] for item, steps in zip(x, self.real.sum(1).tolist(), strict=True)]

    def last_stream(self, x: Tensor) -> Tensor:
        """x_L for x₀ = ``x``: the output of the last layer or, for a block with a state of its own, of the stack."""
        state = self.stack.enter(x)
        for join in self.stack.joins:
            state = join(state)
        y: Tensor = state if isinstance(state, Tensor) and state.shape == x.shape else self.stack.leave(state)
        return y

    def gated_maps(self) -> list[list[nn.Module]]:
        """By layer, the modules that compute gates."""
        return [
            [part for join in layer for part in join.modules() if isinstance(part, GateMaps) and part.gates]
            for layer in self.layers
        ]


@torch.no_grad()
def multiply_weights(layers: Iterable[Layer], gain: float) -> None:
    """Multiply every weight matrix and kernel of ``layers`` in place; biases and gains of norms do not change."""
    for layer in layers:
        for weight in weights(layer):
            weight.mul_(gain)


@torch.no_grad()
def take_batch_statistics(network: nn.Module, inputs: Tensor) -> None:
    """Set the running statistics of batch norms to those of ``inputs``.

    Evaluation mode then normalises as training does at the start. Without this it would divide by one.
    """
    norms = [part for part in network.modules() if isinstance(part, BATCH_NORMS)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    if norms:
        network(inputs)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum


def example_batch(cell: Cell, network: nn.Module, generator: torch.Generator) -> tuple[Tensor, Loss]:
    """A standard-normal input of the bare stack, and the loss: the sum of its outputs times standard-normal weights."""
    example = cell_family(cell).example(cell.batch_size, cell.width, seq_len=cell.seq_len, generator=generator)
    inputs = example.to(cell_device(cell), cell_dtype(cell))
    cotangent = torch.randn(example.shape, generator=generator).to(inputs)
    return inputs, lambda: (network(inputs) * cotangent).sum()


def training_of(cell: Cell, name: str, network: nn.Module) -> Training:
    """The training of ``network`` by the cell's recipe on the data set called ``name``, ready to start."""
    dataset = make_dataset(name, **dataset_options(cell))
    train = dataset.load(seed=cell.seed).train
    return Training(network, train, dataset.target_kind, recipe_from(cell), cell.batch_size, cell.seed)


def data_batch(training: Training, generator: torch.Generator) -> tuple[Tensor, Loss]:
    """One random batch of the training data, and its loss."""
    chosen = torch.randperm(len(training.train.inputs), generator=generator)[: training.batch_size]
    inputs, targets = (to_device(part[chosen], training.device, training.dtype) for part in training.train)
    return inputs, lambda: loss_of(training.network(inputs), targets, training.target_kind)

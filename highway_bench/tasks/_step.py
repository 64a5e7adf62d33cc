"""One step of a bare stack on an example input: what throughput and memory measure, in each phase and mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor, nn

from highway_bench.cell import Cell
from highway_bench.families.parts import count_parameters
from highway_bench.measure.device import cache_eviction, synchronise
from highway_bench.measure.flops import count_flops
from highway_bench.tasks.base import Skip, check_step
from highway_bench.tasks.from_cell import (
    cell_device,
    cell_dtype,
    cell_family,
    cell_stack,
)
from highway_bench.tasks.modes import EXECUTION_MODES
from highway_bench.training.recipe import Recipe

UPDATE = Recipe(rate=1e-3, momentum=0.9)  # of the timed training step; its effect is undone after every sample
OPTIMISER_MOVES = 5  # numbers that SGD moves a weight: weight, gradient and momentum read, weight and momentum written
INPUT_SEED = 0  # the same input for every block


def check_recurrent(network: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Raise ``Skip`` for recurrent layers in bfloat16 on a GPU, whose steps are more than cuDNN's work (torch 2.13)."""
    recurrent = any(isinstance(part, nn.RNNBase) for part in network.modules())
    if recurrent and device.type == "cuda" and dtype == torch.bfloat16:
        raise Skip("torch copies recurrent weights in bfloat16 at every forward pass, which would be timed and counted")


class StackStep:
    """The workload of a cell without a data set: enter → connections → leave on a standard-normal input.

    The phase ``forward`` evaluates without gradients. ``forward-backward`` also computes the gradient of every
    parameter that is not frozen, for a fixed standard-normal gradient of the output. ``train-step`` also updates these
    parameters by SGD with momentum, as trainability does. Parameters that the output does not depend on have no
    gradient and are not updated. A compiled network compiles at the first step, and a CUDA graph is captured there.
    """

    def __init__(self, cell: Cell) -> None:
        check_step(cell)
        self.cell = cell
        self.device = cell_device(cell)
        self.network = cell_stack(cell)
        check_recurrent(self.network, self.device, cell_dtype(cell))
        self.params = count_parameters(self.network)
        self.items = cell.batch_size
        source = torch.Generator().manual_seed(INPUT_SEED)
        example = cell_family(cell).example(cell.batch_size, cell.width, seq_len=cell.seq_len, generator=source)
        self.x = example.to(self.device, cell_dtype(cell))
        self.cotangent = torch.randn(example.shape, generator=source).to(self.device, self.x.dtype)
        self.parameters = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        if not self.parameters and cell.phase != "forward":
            raise Skip("the network has no parameters, so there is no gradient to take")
        self.optimiser = UPDATE.optimiser_for(self.network) if self.parameters else None
        self.start = [parameter.detach().clone() for parameter in self.parameters] if cell.phase == "train-step" else []
        self.buffers = [
            (module, name, buffer, buffer.clone())
            for module in self.network.modules()
            for name, buffer in module.named_buffers(recurse=False)
        ]
        self.network.train(cell.phase != "forward")
        self._evict = cache_eviction(self.device)
        EXECUTION_MODES[cell.mode].check(cell)
        self.call = EXECUTION_MODES[cell.mode].call(self.network)

    @cached_property
    def launch(self) -> Callable[[], None]:
        """One step of the cell's phase, which may still run on the device when the call returns."""
        return EXECUTION_MODES[self.cell.mode].step(self._phase(self.call), self.device)

    @cached_property
    def flops_per_item(self) -> float:
        """FLOP of a step for one item, counted while a step runs. Read it only after timing."""
        flops = count_flops(self._phase(self.network))
        self.restore()
        return flops / self.items

    def step(self) -> None:
        """One step of the cell's phase, synchronised at its end."""
        self.launch()
        synchronise(self.device)

    def restore(self) -> None:
        """Restore the starting weights and buffers, set the momenta to zero, and evict a GPU's cache."""
        with torch.no_grad():
            for parameter, start in zip(self.parameters, self.start, strict=False):
                parameter.copy_(start)
            for module, name, buffer, start in self.buffers:
                buffer.copy_(start)
                setattr(module, name, buffer)  # a step may have put another tensor in its place
        if self.optimiser is not None:
            for state in self.optimiser.state.values():
                state["momentum_buffer"].zero_()
        self._evict()

    def close(self) -> None:
        """Nothing to release: other steps may share compiled graphs, so these live as long as the process."""

    def _phase(self, network: Callable[[Tensor], Tensor]) -> Callable[[], None]:
        """The cell's phase of ``network``, as a function without arguments."""

        def forward() -> None:
            with torch.no_grad():
                network(self.x)

        def forward_backward() -> None:
            torch.autograd.grad(network(self.x), self.parameters, self.cotangent, allow_unused=True)

        def train_step() -> None:
            assert self.optimiser is not None
            self.optimiser.zero_grad(set_to_none=True)
            network(self.x).backward(self.cotangent)
            self.optimiser.step()

        phases = {"forward": forward, "forward-backward": forward_backward, "train-step": train_step}
        return phases[str(self.cell.phase)]

    def least_bytes(self) -> int:
        """The least bytes that a step moves.

        Forward, it reads every weight once, and reads the input and writes the output of every connection. A backward
        pass moves twice as much again, for the gradients of weights and activations; frozen weights have none. A
        training step also has what the optimiser reads and writes of every weight that it trains.
        """
        connections = self.cell.depth * len(cell_family(self.cell).sublayers)
        weights, trained = (sum(one.nbytes for one in part) for part in (self.network.parameters(), self.parameters))
        activations = 2 * connections * self.x.numel() * self.x.element_size()
        moved = weights + activations
        if self.cell.phase != "forward":
            moved += weights + trained + 2 * activations
        if self.cell.phase == "train-step":
            moved += OPTIMISER_MOVES * trained
        return moved

"""Execution modes: how a step is called in each of ``cell.MODES``.

A new mode is its name there and its class here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType

import torch
from torch import Tensor, nn

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.tasks.base import Skip
from highway_bench.tasks.from_cell import cell_device

Call = Callable[[Tensor], Tensor]


class ExecutionMode:
    """Eager: the network is called as it is. The other modes change some of this."""

    compiles = False  # the first step compiles, which is a metric of its own and takes long
    allocates = True  # each step allocates its memory

    def check(self, cell: Cell) -> None:
        """Raise ``Skip`` where ``cell`` cannot run in this mode."""

    def call(self, network: nn.Module) -> Call:
        """The network as a step calls it."""
        return network

    def step(self, phase: Callable[[], None]) -> Callable[[], None]:
        """``phase``, a whole step, as it is repeated."""
        return phase


class CompileMode(ExecutionMode):
    """``torch.compile``, at the first step."""

    compiles = True

    def check(self, cell: Cell) -> None:
        if not blocks.get(cell.block).compile:
            raise Skip(f"block {cell.block!r} says that it does not compile")

    def call(self, network: nn.Module) -> Call:
        compiled: Call = torch.compile(own_call(network), dynamic=False)
        return compiled


class CudaGraphMode(ExecutionMode):
    """A CUDA graph, captured once; each step replays it."""

    allocates = False

    def check(self, cell: Cell) -> None:
        if cell_device(cell).type != "cuda":
            raise Skip("CUDA graphs need a CUDA device")
        if cell.phase == "train-step":
            raise Skip("the training step's optimiser is not recorded; use forward-backward")

    def step(self, phase: Callable[[], None]) -> Callable[[], None]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # lazy set-up must be over before the capture begins
            for _ in range(3):
                phase()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            phase()
        return graph.replay


EXECUTION_MODES: Mapping[str, ExecutionMode] = {
    "eager": ExecutionMode(),
    "compile": CompileMode(),
    "cudagraph": CudaGraphMode(),
}


def own_call(network: nn.Module) -> Call:
    """``network`` as a function of its own, for ``torch.compile``.

    Graphs are kept by code object, at most eight to each. All stacks share one ``forward``: compiled as they are, the
    ninth of a process would run eagerly, and one that is built like another would be given its graph.
    """

    def call(x: Tensor) -> Tensor:
        y: Tensor = network(x)
        return y

    return FunctionType(call.__code__.replace(), call.__globals__, closure=call.__closure__)

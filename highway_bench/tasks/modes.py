"""Execution modes: how a step is called in each of ``cell.MODES``.

A new mode needs its name in ``cell.MODES`` and its class here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
import torch.hub
from torch import Tensor, nn

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.measure.device import on_side_stream
from highway_bench.measure.torch_internals import CLEAR_CACHES
from highway_bench.tasks.base import Skip
from highway_bench.tasks.from_cell import cell_device

NetworkCall = Callable[[Tensor], Tensor]


class ExecutionMode:
    """Eager: the network is called as it is. Subclasses are the other modes."""

    compiles = False  # True: the first step compiles, which takes long and has its own metric
    allocates = True  # False: steps reuse the memory of the first

    def check(self, cell: Cell) -> None:
        """Raise ``Skip`` where ``cell`` cannot run in this mode."""

    def call(self, network: nn.Module) -> NetworkCall:
        """The function by which a step calls ``network``."""
        return network

    def step(self, phase: Callable[[], None], device: torch.device) -> Callable[[], None]:
        """The function that repeats ``phase``, which is a whole step on ``device``."""
        return phase


class CompileMode(ExecutionMode):
    """``torch.compile``, which compiles at the first step."""

    compiles = True

    def check(self, cell: Cell) -> None:
        if not blocks.get(cell.block).compile:
            raise Skip(f"block {cell.block!r} says that it does not compile")

    def call(self, network: nn.Module) -> NetworkCall:
        bars: Any = getattr(torch.hub, "tqdm", None)  # what torch draws its progress with: tqdm, or a stand-in
        if hasattr(bars, "set_lock"):  # the default is a lock of several processes, which an ended worker leaves
            bars.set_lock(threading.RLock())
        compiled: NetworkCall = torch.compile(as_new_function(network), dynamic=False)
        return compiled


class CudaGraphMode(ExecutionMode):
    """A CUDA graph that is captured at the first step and replayed at each one."""

    allocates = False

    def check(self, cell: Cell) -> None:
        if cell_device(cell).type != "cuda":
            raise Skip("CUDA graphs need a CUDA device")
        if cell.phase == "train-step":
            raise Skip("a CUDA graph does not capture the training step's optimiser; use forward-backward")

    def step(self, phase: Callable[[], None], device: torch.device) -> Callable[[], None]:
        for _ in range(3):  # lazy set-up must be over before the capture begins
            on_side_stream(phase, device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            phase()
        return graph.replay


EXECUTION_MODES: Mapping[str, ExecutionMode] = {
    "eager": ExecutionMode(),
    "compile": CompileMode(),
    "cudagraph": CudaGraphMode(),
}


def as_new_function(network: nn.Module) -> NetworkCall:
    """``network`` as a function with its own code object, for ``torch.compile``.

    ``torch.compile`` caches graphs by code object, at most eight for each. All stacks share one ``forward``. Without a
    code object of its own, the ninth stack of a process would run eagerly, and a stack would reuse the graph of an
    equal one.
    """

    def call(x: Tensor) -> Tensor:
        y: Tensor = network(x)
        return y

    return FunctionType(call.__code__.replace(), call.__globals__, closure=call.__closure__)


CACHES: Mapping[str, str] = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}


@contextmanager
def compiler_caches(folder: str | None) -> Iterator[None]:
    """Meanwhile the compilers' caches on disk are in ``folder`` alone; ``None`` leaves them where they are.

    In a new folder, what compiles takes the time of a fresh machine. Another process that has the folder compiles
    nothing again. Caches of this process are cleared on both sides.
    """
    if folder is None:
        yield
        return
    before = {name: os.environ.get(name) for name in CACHES}
    os.environ.update({name: str(Path(folder, part)) for name, part in CACHES.items()})
    clear_caches: Callable[[], object] = CLEAR_CACHES.found or (lambda: None)  # the row says what is lost then
    clear_caches()
    try:
        yield
    finally:
        clear_caches()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

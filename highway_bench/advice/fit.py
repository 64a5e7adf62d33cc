"""Fit: whether networks of this depth fit memory, from measured networks of one and of two layers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import psutil

from highway_bench.advice.request import AdviceRequest
from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.measure.memory import measure_memory
from highway_bench.provenance.gpu import gpu
from highway_bench.tasks.from_cell import cell_dataset, cell_stack
from highway_bench.tasks.recipe_words import recipe_from
from highway_bench.training.evaluation import loss_of, to_device

PROCESS_BYTES = 400 * 2**20  # of a worker process with its libraries
USABLE = 0.9  # share of the free memory that a run may take


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes of a training step of ``cell``'s network, as ``base`` + ``layer`` · depth."""

    base: int
    layer: int

    def at(self, depth: int) -> int:
        """The bytes at ``depth``."""
        return self.base + depth * self.layer

    def depth_in(self, available: float) -> int:
        """The largest depth that ``available`` bytes hold."""
        return max(0, math.floor((available - self.base) / self.layer))


@dataclass(frozen=True)
class Fit:
    """What a training step needs of the memory, and how many workers can train at the same time."""

    need: MemoryNeed
    workers: int


def fit(request: AdviceRequest, workers: int) -> Fit:
    """The fit of ``request``; raises ``BadInput`` for a depth that does not fit memory."""
    need = memory_need(request.run(request.connections[0], 2, request.first_rates[-1], 0))
    return Fit(need, workers_that_fit(need, request.depth, workers, request.device))


def memory_need(cell: Cell) -> MemoryNeed:
    """The need of a training step of ``cell``, from the live tensors at one and at two layers, on the CPU."""
    one, two = (step_bytes(cell.but(depth=depth, device="cpu")) for depth in (1, 2))
    layer = max(two - one, 1)
    return MemoryNeed(max(one - layer, 0), layer)


def step_bytes(cell: Cell) -> int:
    """The peak of live bytes in a training step of ``cell``'s network on its data."""
    dataset = cell_dataset(cell)
    assert dataset is not None
    network = cell_stack(cell)
    split = dataset.load(seed=cell.seed).train
    first = next(network.parameters())
    inputs, targets = (to_device(part[: cell.batch_size], first.device, first.dtype) for part in split)
    report = measure_memory(
        network,
        lambda: loss_of(network(inputs), targets, dataset.target_kind),
        optimiser=recipe_from(cell).optimiser_for(network),
        inputs=(inputs, targets),
    )
    return report.peak


def workers_that_fit(need: MemoryNeed, depth: int, workers: int, device: str) -> int:
    """How many of ``workers`` processes can train networks of ``depth`` at the same time.

    Raises ``BadInput``, with the number, where not one can.
    """
    workers = 1 if device.startswith("cuda") else workers  # they would share it
    available = USABLE * free_bytes(device)
    process = PROCESS_BYTES if device == "cpu" else 0
    if need.at(depth) + process > available:
        raise BadInput(
            f"depth {depth:,} does not fit memory: a training step of pre-norm needs about {gib(need.at(depth))}, and "
            f"{gib(available - process)} are free; depth {need.depth_in(available - process):,} would fit"
        )
    return min(workers, int(available // (need.at(depth) + process)))


def free_bytes(device: str) -> int:
    """Free memory of this machine, or the memory of its GPU."""
    return int(gpu(device).memory if device.startswith("cuda") else psutil.virtual_memory().available)


def gib(size: float) -> str:
    """Bytes in GiB or MiB."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{max(size, 0) / 2**20:,.0f} MiB"

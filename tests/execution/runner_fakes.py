"""Tasks for the runner's tests; the recipe says what a cell does. It is a plug-in, so that workers can import it."""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.provenance import identity
from highway_bench.results.schema import Status
from highway_bench.tasks import CellCost, Measurement, Metric, Outcome, Skip, Task, cell_by_cell, register_task, tasks

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder

if multiprocessing.parent_process() is not None:
    tasks._loaded = True  # a worker of these tests needs neither the package's own tasks nor torch


@register_task
class Fake(Task):
    """Does what the recipe says, and logs it."""

    name = "fake"
    version = "1"
    metrics = (Metric("time", "s", "lower"), Metric("loss", "nat", "lower"))

    def timeout(self, cell: Cell) -> float:
        return float(cell.recipe.get("timeout", 20.0))

    def cost(self, cell: Cell) -> CellCost:
        return CellCost(seconds=float(cell.recipe.get("seconds", 0.01)), bytes=int(cell.recipe.get("bytes", 0)))

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        return cell_by_cell(cells, self.measure_cell)

    def measure_cell(self, cell: Cell) -> Outcome:
        return Outcome(cell, tuple(self.measurements(cell)), params=12, flops_per_item=24.0)

    def measurements(self, cell: Cell) -> Iterable[Measurement]:
        if cell.recipe.get("do") == "skip":
            raise Skip("makes no sense")
        log(cell)
        until = time.monotonic() + 60.0  # so that a worker that a failed test left behind ends too
        while "hold" in cell.recipe and Path(cell.recipe["hold"]).exists() and time.monotonic() < until:
            time.sleep(0.02)
        found = ACTIONS[cell.recipe.get("do", "measure")](cell)
        yield from measured(cell) if found is None else found


@register_task
class FakeTrials(Fake):
    """Cells of one depth in one group, measured one after the other."""

    name = "fake-trials"

    def group(self, cell: Cell) -> Hashable:
        return cell.depth


@register_task
class FakeTiming(FakeTrials):
    """A meter whose cells of one depth are timed together."""

    name = "fake-timing"
    alone = True
    meter = True


@register_task
class FakeSearch(Fake):
    """Needs three trials, and runs at the rate of the least loss."""

    name = "fake-search"

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        if cell.trial is not None:
            return ()
        losses = cell.recipe["losses"]
        return tuple(
            cell.but(trial=trial, recipe={"rate": rate, "loss": loss, "log": cell.recipe["log"]})
            for trial, (rate, loss) in enumerate(losses)
        )

    def resolve(self, cell: Cell, results: Mapping[Cell, Mapping[str, float | None]]) -> Cell:
        losses = [(values["loss"], trial.recipe["rate"]) for trial, values in results.items()]
        scored = [(loss, rate) for loss, rate in losses if loss is not None]
        if cell.trial is None and not scored:
            raise Skip("no trial has a loss")
        return cell if cell.trial is not None else cell.but(recipe={**cell.recipe, "rate": min(scored)[1]})


def log(cell):
    """Append a line to the recipe's log: one write, so that lines of several processes do not mix."""
    line = f"{cell.block} {cell.depth} {cell.seed} {cell.trial} {cell.recipe.get('rate')} {os.getpid()}\n"
    with Path(cell.recipe["log"]).open("a", encoding="utf-8") as out:
        out.write(line)


def measured(cell):
    time = Measurement(metric="time", value=2.0, low=1.0, high=3.0, samples=[1.0, 2.0, 3.0])
    return [time, loss_of(cell.recipe.get("loss", 0.5))]


def loss_of(value, **words):
    return Measurement(metric="loss", value=value, **words)


def raised(error):
    raise error


def value(cell):
    """The number in the module of the cell's family."""
    return [loss_of(importlib.import_module(cell.family.partition(":")[0]).VALUE)]


def edit(cell):
    """As ``value``; the module's file is replaced or removed after the import."""
    found, path = value(cell), Path(cell.recipe["file"])
    path.unlink() if cell.recipe["edit"] is None else path.write_text(cell.recipe["edit"], encoding="utf-8")
    return found


def crash_later(cell):
    """Once the recipe's file is there."""
    if Path(cell.recipe["file"]).exists():
        os._exit(3)


def printing(cell):
    """Megabytes on both streams."""
    for stream in (sys.stdout, sys.stderr):
        stream.write("x" * 2**20 * cell.recipe["megabytes"] + "\n")


def memory_of_its_cgroup(cell):
    """Take more memory than the recipe's memory cgroup allows; only this process is in it."""
    Path(cell.recipe["cgroup"], "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    taken = bytearray(cell.recipe["bytes"])
    taken[::4096] = b"x" * len(taken[::4096])


def deaf(cell):
    """Hang, and ignore the signal that asks the process to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)


def break_gpu(cell):
    """Fail as a kernel's assertion does: every later call of CUDA fails too."""

    def broken():
        raise RuntimeError("CUDA error: device-side assert triggered")

    identity()  # which reads torch's version, before the stand-in
    cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=broken, empty_cache=broken)
    sys.modules["torch"] = SimpleNamespace(OutOfMemoryError=MemoryError, cuda=cuda)
    broken()


def cuda_memory(cell):
    """Fail as torch does where a GPU refuses memory; with the word ``allocate``, on a GPU itself."""
    import torch

    if "allocate" in cell.recipe:
        torch.empty(cell.recipe["allocate"], dtype=torch.uint8, device="cuda")
    raise torch.OutOfMemoryError("Allocation on device 0 would exceed allowed memory.\nof 2 GiB")


def on_cuda(cell):
    """A sum on the GPU."""
    import torch

    return [loss_of(torch.ones(1000, device="cuda").sum().item())]


def crowded(cell):
    """Run out of memory the first time."""
    tried = Path(f"{cell.recipe['log']}-{cell.seed}")
    if not tried.exists():
        tried.touch()
        time.sleep(0.5)
        raise MemoryError("no memory is left")
    time.sleep(0.05)


def on_gpu(cell):
    """The number of the one GPU that it may use; samples are begin, end and the cores that it may use."""
    began = time.monotonic()
    time.sleep(0.3)
    samples = [began, time.monotonic(), *map(float, os.sched_getaffinity(0))]
    return [loss_of(float(os.environ["CUDA_VISIBLE_DEVICES"]), samples=samples)]


# What a cell does, and its measurements; ``measured`` where these are ``None``.
ACTIONS = {
    "measure": measured,
    "short": lambda cell: time.sleep(0.05),
    "value": value,
    "edit": edit,
    "diverge": lambda cell: [loss_of(None, status=Status.DIVERGED, message="at step 3")],
    "not-finite": lambda cell: [
        Measurement(metric="time", value=float("nan"), samples=[1.0, float("inf")]),
        loss_of(float("inf"), status=Status.DIVERGED),
    ],
    "large": lambda cell: [Measurement(metric="time", value=2.0, samples=[float(one) for one in range(100_000)])],
    "odd-value": lambda cell: [loss_of("much")],
    "odd-message": lambda cell: [loss_of(1.0, message="\ud800")],
    "undeclared": lambda cell: [Measurement(metric="speed", value=1.0)],
    "twice": lambda cell: [loss_of(1.0), loss_of(2.0)],
    "nothing": lambda cell: [],
    "raise": lambda cell: raised(RuntimeError("shapes do not fit\nat length")),
    "bad-input": lambda cell: raised(BadInput("no such width")),
    "leave": lambda cell: raised(SystemExit(4)),
    "interrupt": lambda cell: raised(KeyboardInterrupt()),
    "memory": lambda cell: raised(MemoryError()),
    "allocator": lambda cell: raised(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")),
    "address-space": lambda cell: [loss_of(float(len(bytearray(2**60))))],
    "cgroup-memory": memory_of_its_cgroup,
    "crowded": crowded,
    "print": printing,
    "full-disk": lambda cell: resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)),
    "exit": lambda cell: os._exit(3),
    "exit-0": lambda cell: os._exit(0),
    "exit-255": lambda cell: os._exit(255),
    "crash-later": crash_later,
    "abort": lambda cell: os.abort(),
    "segmentation-fault": lambda cell: ctypes.string_at(0),
    "kill": lambda cell: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda cell: os.kill(os.getpid(), signal.SIGSTOP),
    "hang": lambda cell: time.sleep(60),
    "deaf": deaf,
    "gpu": on_gpu,
    "cuda": on_cuda,
    "cuda-memory": cuda_memory,
    "break-gpu": break_gpu,
}

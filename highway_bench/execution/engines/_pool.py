"""Pools of worker processes of the local engine: which jobs share one, on what it runs, and what they take of it.

A worker sees one GPU only, by ``CUDA_VISIBLE_DEVICES``, so that ``cuda`` is the same device in every cell. GPUs of
another model than the first one's are not used: their rows would be those of another machine.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, NamedTuple

import psutil
from pebble import ProcessPool

from highway_bench.errors import BadInput
from highway_bench.execution import worker
from highway_bench.execution.job import Job
from highway_bench.measure.processes import without_working_folder
from highway_bench.os_names import usable_cores
from highway_bench.provenance.free_memory import PROCESS_BYTES, USABLE, gpu, read_apart

VISIBLE = "CUDA_VISIBLE_DEVICES"
ON_GPU = 4  # trainings at a time: small networks keep a GPU waiting for its host
HOST_CORES = 2  # of a timed cell: one for the forward pass, one for the thread of the backward pass
CAPTURED = "cudagraph"  # the mode whose steps the host launches at once; those of other modes are bound by the host
READ = (
    "import json, torch; print(json.dumps([torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]))"
)


@dataclass(frozen=True)
class Slot:
    """What a pool of workers runs on: ``workers`` at a time, on one GPU or on none.

    ``gpu`` is the value of ``CUDA_VISIBLE_DEVICES`` in these workers. ``cores`` are the numbers of the host's cores to
    which they are pinned; empty for all cores.
    """

    workers: int
    gpu: str | None = None
    cores: tuple[int, ...] = ()


def slots_on_gpus(lanes: int) -> list[Slot]:
    """Slots for jobs that share GPUs: ``lanes`` workers, at most ``ON_GPU`` on each, spread over all GPUs."""
    names = usable_gpus()[:lanes]
    return [
        Slot(min(ON_GPU, lanes // len(names) + (number < lanes % len(names))), name)
        for number, name in enumerate(names)
    ]


def slots_to_time(mode: str) -> list[Slot]:
    """Slots for jobs of ``mode`` that are timed, one at a time on each.

    A step that the host launches kernel by kernel takes as long as the host does, so it runs alone on the machine. A
    captured step runs at the same time as one on another GPU; each has host cores of its own. With one GPU nothing else
    of the run is there meanwhile, from which its cores would have to be kept.
    """
    names, cores = usable_gpus(), usable_cores()
    most = min(len(names), len(cores) // HOST_CORES)
    if mode != CAPTURED or most < 2:
        return [Slot(1, names[0])]
    each = len(cores) // most
    return [Slot(1, name, tuple(cores[each * number :][:each])) for number, name in enumerate(names[:most])]


def usable_gpus() -> tuple[str, ...]:
    """The GPUs of the first one's model, each as a value of ``CUDA_VISIBLE_DEVICES``. Raises ``BadInput`` where torch
    finds none."""
    return _usable(os.environ.get(VISIBLE))


@cache
def _usable(visible: str | None) -> tuple[str, ...]:
    models = models_of_gpus()
    if not models:
        raise BadInput("torch finds no CUDA device on this machine")
    names = visible.split(",") if visible else map(str, range(len(models)))
    return tuple(name for name, model in zip(names, models, strict=False) if model == models[0])


def models_of_gpus() -> list[str]:
    """The models of the GPUs that this process may use, in CUDA's order.

    Raises ``BadInput`` where they cannot be read.
    """
    models: list[str] = read_apart(READ, lacking="the GPUs of this machine cannot be read")
    return models


def gpu_share(job: Job) -> float:
    """The share of its GPU that ``job`` reserves: 0 on a CPU, 1 where it is timed, else by the memory of its process,
    and at least 1 / ``ON_GPU``."""
    device = job.cells[0].device
    if device == "cpu":
        return 0.0
    if job.alone:
        return 1.0
    return min(1.0, max(1 / ON_GPU, (job.bytes + PROCESS_BYTES) / (USABLE * gpu(device).memory)))


class WorkerProcess(SpawnProcess):
    """A worker, which finds modules as this process does."""

    def start(self) -> None:
        with without_working_folder():
            super().start()


class Workers(SpawnContext):
    """Starts the processes of one pool and lists them. ``serving`` are the ids of those that took a job."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []
        self.serving: set[int] = set()
        with without_working_folder():
            resource_tracker.ensure_running()  # the pool's locks would start this process of Python's

    def Process(self, *given: Any, **named: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        process = WorkerProcess(*given, **named)
        self.started.append(process)
        return process

    def gone(self) -> set[int]:
        """The ids of processes that ended."""
        ids = {process.pid for process in self.started if process.pid is not None}
        return {process for process in ids if not psutil.pid_exists(process)}

    def exit_code(self, pid: int | None) -> int | None:
        """The exit code of the process ``pid``; ``None`` where it is unknown."""
        return next((process.exitcode for process in self.started if process.pid == pid), None)


class WorkerKind(NamedTuple):
    """The jobs that a worker process may run."""

    task: str
    mode: str
    threads: int
    alone: bool
    device: str
    plugins: tuple[str, ...]

    @classmethod
    def of(cls, job: Job) -> WorkerKind:
        return cls(job.task, job.mode, job.threads, job.alone, job.cells[0].device, job.plugins)

    def slots(self, workers: int) -> list[Slot]:
        """What its jobs run on where ``workers`` may run in parallel: one slot on a CPU, one for each GPU in use.

        Raises ``BadInput`` where this machine has no GPU and the jobs need one.
        """
        if self.device != "cpu" and self.alone:
            return slots_to_time(self.mode)
        lanes = 1 if self.alone else max(1, workers // self.threads)
        return [Slot(lanes)] if self.device == "cpu" else slots_on_gpus(lanes)


@dataclass(eq=False)
class Pool:
    """The worker processes of one slot."""

    slot: Slot
    processes: ProcessPool
    workers: Workers

    @classmethod
    def of(cls, slot: Slot, kind: WorkerKind, modules: Collection[str]) -> Pool:
        """A pool whose workers start with its first job."""
        workers = Workers()
        processes = ProcessPool(
            max_workers=slot.workers,
            context=workers,
            initializer=worker.start,
            initargs=(kind.task, kind.threads, kind.plugins, sorted(modules), slot.gpu, slot.cores),
        )
        return cls(slot, processes, workers)

    def stop(self) -> None:
        """End every worker."""
        self.processes.stop()  # type: ignore[no-untyped-call]  # pebble's
        self.processes.join()

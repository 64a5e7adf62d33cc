"""Pools of worker processes of the local engine: which jobs share one, and on what it runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, NamedTuple

import psutil
from pebble import ProcessPool

from highway_bench.execution import worker
from highway_bench.execution.engines._gpus import Slot, slots_on_gpus, slots_to_time
from highway_bench.execution.job import Job
from highway_bench.measure.processes import without_working_folder


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

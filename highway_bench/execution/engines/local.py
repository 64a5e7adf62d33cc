"""Local engine: runs jobs in worker processes of this machine, each with a time-out. No job can stop the run.

A pool runs jobs of one ``WorkerKind`` (task, mode, threads, …): the memory tracker must never share a process with
compiled cells. A pool is reused while jobs of its kind follow, because a new worker must import torch. Jobs that run
through other modules get a new pool, whose workers read the source of these modules before any import (see
``source_check``). A job that must run alone has a pool of one worker, and no other job runs meanwhile.

Time-outs are measured here, by a clock that no change of the system's time moves; the pool's own would follow it.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import psutil
from pebble import ProcessExpired, ProcessPool

from highway_bench.errors import HighwayBenchError
from highway_bench.execution import worker
from highway_bench.execution.engines.base import register_engine
from highway_bench.execution.failure import death, failure
from highway_bench.execution.job import Began, CellResult, Ended, Job
from highway_bench.execution.oom_killer import oom_kills
from highway_bench.provenance.free_memory import PROCESS_BYTES, usable_bytes
from highway_bench.provenance.machine import cores
from highway_bench.results.schema import Status

POLL = 0.1  # seconds between reads of the results files of running jobs
SILENCE = 1.0  # seconds after which a gone worker that the pool does not report has left with exit code 0
ON_GPU = 4  # workers at a time: small networks keep a GPU waiting for its host
STARTS = 3  # successive times that workers may die before they take a job
STARTING = 600.0  # seconds in which a worker must take its job: importing torch from a busy disk takes minutes


class WorkersUnusable(HighwayBenchError):
    """Worker processes die, or hang, before they can take a job."""


class Workers(SpawnContext):
    """Starts the processes of one pool and lists them. ``serving`` are the ids of those that took a job."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []
        self.serving: set[int] = set()

    def Process(self, *given: Any, **named: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        process = SpawnProcess(*given, **named)
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

    def lanes(self, workers: int) -> int:
        """Workers that may run in parallel: one for jobs that must run alone, and few on a GPU, which they share."""
        return 1 if self.alone else max(1, min(workers // self.threads, workers if self.device == "cpu" else ON_GPU))


@dataclass
class Running:
    """A job in a worker: its results file, the bytes ``read`` of it, and the indices of the cells that ended.

    ``process`` is the worker's process id, once it took the job, at the time ``taken``; ``gone`` the first time at
    which that process did not exist. ``stopped`` says that the job took longer than it may.
    """

    job: Job
    path: Path
    began: float = field(default_factory=time.monotonic)
    read: int = 0
    ended: set[int] = field(default_factory=set)
    process: int | None = None
    taken: float | None = None
    gone: float | None = None
    stopped: bool = False

    def is_overdue(self) -> bool:
        """Whether the job has run for longer than its timeout."""
        return self.taken is not None and time.monotonic() - self.taken > self.job.timeout

    def is_lost(self) -> bool:
        """Whether the worker left and the pool did not report it: it takes exit code 0 for a normal end, and misses a
        worker that ends as it takes a job."""
        if self.process is None or psutil.pid_exists(self.process):
            return False
        self.gone = self.gone or time.monotonic()
        return time.monotonic() - self.gone > SILENCE

    def left(self) -> list[Job]:
        """The cells that have not ended, each as its own job."""
        return [self.job.single(index) for index in range(len(self.job.cells)) if index not in self.ended]


@register_engine("local")
class LocalEngine:
    """Runs jobs in ``workers`` processes at a time (by default, one per core that this process may use)."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()
        self._folder = Path(tempfile.mkdtemp(prefix="highway-bench-"))
        self._pool: ProcessPool | None = None
        self._workers = Workers()
        self._kind: WorkerKind | None = None
        self._modules: frozenset[str] = frozenset()
        self._running: dict[Future[Any], Running] = {}
        self._submitted = 0
        self._oom_kills = oom_kills()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
        """Run ``jobs``, kind by kind. Every cell of every job ends exactly once.

        Raises ``WorkersUnusable`` where no worker lives long enough to take a job.
        """
        kinds: dict[WorkerKind, deque[Job]] = {}
        for job in jobs:
            kinds.setdefault(WorkerKind.of(job), deque()).append(job)
        # Jobs for the pool of the last call run first.
        for kind in sorted(kinds, key=lambda kind: kind != self._kind):
            yield from self._run_kind(kind, kinds[kind])

    def drain(self) -> Iterator[Ended]:
        """After an interrupt: stop the workers, and yield the cells that ended but were not yielded yet."""
        self._stop()
        for running in self._running.values():
            yield from self._read(running)
        self._running.clear()

    def _run_kind(self, kind: WorkerKind, queue: deque[Job]) -> Iterator[Began | Ended]:
        lanes = kind.lanes(self.workers)
        modules = frozenset(name for job in queue for name in job.sources)
        available = usable_bytes(kind.device)
        deaths = 0
        while queue or self._running:
            try:
                while queue and len(self._running) < lanes and self._has_room(queue[0], available):
                    job = queue[0]
                    self._submit(kind, lanes, job, modules)
                    queue.popleft()
                    yield Began(job)
                done, _ = wait(self._running, timeout=POLL, return_when=FIRST_COMPLETED)
                gone = self._workers.gone()  # before the files are read: a worker that took a job has written so
                for future in list(self._running):
                    running = self._running[future]
                    yield from self._read(running)
                    running.stopped = running.is_overdue()
                    if future in done or running.stopped or running.is_lost():
                        future.cancel()  # ends the worker of a stopped job, forgets a lost one, leaves a finished one
                        queue.extendleft(reversed((yield from self._finish(future))))
                        deaths = 0
                if self._is_stuck(gone):
                    raise BrokenProcessPool
            except BrokenProcessPool:
                deaths += 1
                if deaths == STARTS:
                    raise WorkersUnusable(
                        "worker processes die or hang before they can take a job; in a script, call highway_bench "
                        'under `if __name__ == "__main__":`, as every worker imports the script; no plug-in may exit '
                        "Python"
                    ) from None
                self._stop()
                for running in self._running.values():
                    queue.extendleft(running.left() if running.ended else [running.job])
                self._running.clear()

    def _has_room(self, job: Job, available: int) -> bool:
        """Whether ``job`` fits ``available`` bytes next to the running ones. One job may always run: its worker checks
        each cell."""
        jobs = [job, *(running.job for running in self._running.values())]
        return len(jobs) == 1 or sum(one.bytes + PROCESS_BYTES for one in jobs) <= available

    def _is_stuck(self, gone: set[int]) -> bool:
        """Whether no running job has a worker, and one has died (with exit code 0, after which the pool starts another)
        or none has come for long."""
        if not self._running or any(running.process is not None for running in self._running.values()):
            return False
        oldest = min(running.began for running in self._running.values())
        return bool(gone - self._workers.serving) or time.monotonic() - oldest > STARTING

    def _submit(self, kind: WorkerKind, lanes: int, job: Job, modules: frozenset[str]) -> None:
        if kind != self._kind or self._pool is None or not modules <= self._modules:
            self._stop()
            self._kind, self._modules, self._workers = kind, modules, Workers()
            self._pool = ProcessPool(
                max_workers=lanes,
                context=self._workers,
                initializer=worker.start,
                initargs=(kind.task, kind.threads, kind.plugins, sorted(modules)),
            )
        self._submitted += 1
        path = self._folder / f"{self._submitted}.jsonl"
        path.touch()
        # Threads and processes started here inherit the mask: only this process gets Ctrl-C, and stops them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            future = self._pool.schedule(worker.measure, args=(job, path))
        except RuntimeError as error:  # pebble's error for a pool that broke between two jobs
            raise BrokenProcessPool(str(error)) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._running[future] = Running(job, path)

    def _read(self, running: Running) -> Iterator[Ended]:
        """Cells that have ended since the last call. A cell is yielded again if the caller did not resume after it."""
        with running.path.open("rb") as lines:
            lines.seek(running.read)
            for line in lines:
                if not line.endswith(b"\n"):  # being written, or the worker died while writing
                    break
                if running.process is None:
                    running.process, running.taken = int(line), time.monotonic()
                    self._workers.serving.add(running.process)
                else:
                    result = CellResult.of_line(line.decode())
                    yield Ended(running.job, result)
                    running.ended.add(result.index)
                running.read += len(line)

    def _finish(self, future: Future[Any]) -> Generator[Ended, None, list[Job]]:
        """Yield the last cells of a job whose worker finished or is gone; return jobs for cells that must run one by
        one."""
        running = self._running[future]
        try:
            status, message = Status.FAILED, str(future.result())
        except CancelledError:
            if running.stopped:
                status, message = Status.TIMEOUT, f"stopped after {running.job.timeout:g} s"
            else:
                status, message = self._death(self._workers.exit_code(running.process))
        except ProcessExpired as error:
            status, message = self._death(error.exitcode)
        except BrokenProcessPool:
            raise
        except Exception as error:  # the worker's own error, not a task's, such as a full disk
            status, message = failure(error.with_traceback(None))
            message = f"in the worker: {message}"
        yield from self._read(running)
        again: list[Job] = []
        if len(running.job.cells) > 1:
            again = running.left()
        elif not running.ended:
            yield Ended(
                running.job,
                CellResult(index=0, status=status, message=message, seconds=time.monotonic() - running.began),
            )
        del self._running[future]
        running.path.unlink()
        return again

    def _death(self, code: int | None) -> tuple[Status, str]:
        """The status and the reason of a cell whose worker ended with ``code``. Each kill by the kernel explains one
        death."""
        if code != -signal.SIGKILL:
            return death(code)
        before, now = self._oom_kills, oom_kills()
        if before is None or now is None:
            return death(code)
        self._oom_kills = min(before + 1, now)
        return death(code, out_of_memory=now > before)

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]  # pebble's
            self._pool.join()
        self._pool = self._kind = None

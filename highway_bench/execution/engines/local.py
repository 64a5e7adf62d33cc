"""Local engine: runs jobs in worker processes of this machine, each with a time-out. No job can stop the run.

A pool runs jobs of one ``WorkerKind`` (task, mode, threads, …): the memory tracker must never share a process with
compiled cells. A pool is reused while jobs of its kind follow, because a new worker must import torch. Jobs that run
through other modules get a new pool, whose workers read the source of these modules before any import (see
``SourceCheck``). A job that must run alone has a pool of one worker, and no other job runs meanwhile, except captured
steps on other GPUs. Jobs on GPUs have one pool for each GPU (see ``_pool``).

Time-outs are measured here, by a clock that no change of the system's time moves; the pool's own would follow it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import psutil
from pebble import ProcessExpired

from highway_bench.errors import HighwayBenchError
from highway_bench.execution import worker
from highway_bench.execution.engines import register_engine
from highway_bench.execution.engines._pool import Pool, WorkerKind, gpu_share
from highway_bench.execution.failure import death, failure, oom_kills
from highway_bench.execution.job import Began, CellResult, Ended, Job
from highway_bench.os_names import SIGKILL, without_ctrl_c
from highway_bench.provenance.free_memory import PROCESS_BYTES, usable_bytes
from highway_bench.provenance.machine import cores
from highway_bench.results.schema import Status

POLL = 0.1  # seconds between reads of the results files of running jobs
SILENCE = 1.0  # seconds after which a gone worker that the pool does not report has left with exit code 0
STARTS = 3  # successive times that workers may die before they take a job
ROUNDING = 1e-9  # of shares of a GPU
ALL_MEMORY: Final = 2**62  # bytes of a job that runs while no other takes memory
STARTING = 600.0  # seconds in which a worker must take its job: importing torch from a busy disk takes minutes


class PoolBroken(Exception):
    """The workers of ``pool`` died, or hang, before they took a job."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.pool = pool


@dataclass
class Running:
    """A job in a worker of ``pool``: its ``share`` of the pool's GPU or of the memory, its results file, the bytes
    ``read`` of it, and the indices of the cells that ended.

    ``process`` is the worker's process id, once it took the job, at the time ``taken``; ``gone`` the first time at
    which that process did not exist. ``stopped`` says that the job took longer than it may, ``crowded`` that another
    one took memory meanwhile.
    """

    job: Job
    pool: Pool
    share: float
    path: Path
    began: float = field(default_factory=time.monotonic)
    read: int = 0
    ended: set[int] = field(default_factory=set)
    process: int | None = None
    taken: float | None = None
    gone: float | None = None
    stopped: bool = False
    crowded: bool = False

    def may_fit_alone(self, status: Status) -> bool:
        """Whether a cell with this status may have lacked the memory that other jobs took."""
        return status is Status.OOM and self.crowded and self.job.bytes < ALL_MEMORY

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


@register_engine("local")
class LocalEngine:
    """Runs jobs in ``workers`` processes at a time (by default, one per core that this process may use), on a CPU or on
    every GPU of the first one's model.

    ``expected`` are modules that jobs of later calls run through: workers are ready for these jobs too.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()
        self.expected: frozenset[str] = frozenset()
        self._folder = Path(tempfile.mkdtemp(prefix="highway-bench-"))
        self._pools: list[Pool] = []
        self._kind: WorkerKind | None = None
        self._modules: frozenset[str] = frozenset()
        self._usable = 1
        self._running: dict[Future[Any], Running] = {}
        self._crowded_out: deque[Job] = deque()
        self._submitted = 0
        self._oom_kills = oom_kills()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
        """Run ``jobs``, kind by kind. Every cell of every job ends exactly once.

        Raises ``HighwayBenchError`` where no worker lives long enough to take a job.
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
        self._crowded_out.clear()

    def _run_kind(self, kind: WorkerKind, queue: deque[Job]) -> Iterator[Began | Ended]:
        self._open(kind, self.expected.union(*(job.sources for job in queue)))
        deaths = 0
        while queue or self._running or self._crowded_out:
            if not queue and not self._running:
                queue, self._crowded_out = self._crowded_out, deque()
            try:
                while queue and (chosen := self._pool_for(queue[0])) is not None:
                    self._submit(chosen, queue[0])
                    yield Began(queue.popleft())
                done, _ = wait(self._running, timeout=POLL, return_when=FIRST_COMPLETED)
                # Before the files are read: a worker that took a job has written so.
                gone = [(pool, pool.workers.gone()) for pool in self._pools]
                for future in list(self._running):
                    running = self._running[future]
                    yield from self._read(running)
                    running.stopped = running.is_overdue()
                    if future in done or running.stopped or running.is_lost():
                        future.cancel()  # ends the worker of a stopped job, forgets a lost one, leaves a finished one
                        queue.extendleft(reversed((yield from self._finish(future))))
                        deaths = 0
                for pool, ended in gone:
                    if self._is_stuck(pool, ended):
                        raise PoolBroken(pool)
            except PoolBroken as broken:
                deaths += 1
                if deaths == STARTS:
                    raise HighwayBenchError(
                        "worker processes die or hang before they can take a job: no plug-in may exit Python"
                    ) from None
                self._replace(broken.pool, queue)

    def _open(self, kind: WorkerKind, modules: frozenset[str]) -> None:
        """Open the pools for jobs of ``kind`` that run through ``modules``, unless they are open."""
        if kind != self._kind or not modules <= self._modules:
            self._stop()
            self._folder.mkdir(exist_ok=True)  # leaving the context removed it
            self._usable = max(1, usable_bytes("cpu"))
            self._pools = [Pool.of(slot, kind, modules) for slot in kind.slots(self.workers)]
            self._kind, self._modules = kind, modules

    def _replace(self, broken: Pool, queue: deque[Job]) -> None:
        """Open another pool for one that is broken; its jobs go back to ``queue``."""
        assert self._kind is not None
        broken.stop()
        for future, running in list(self._running.items()):
            if running.pool is broken:
                queue.extendleft(running.job.singles_left(running.ended) if running.ended else [running.job])
                del self._running[future]
        self._pools[self._pools.index(broken)] = Pool.of(broken.slot, self._kind, self._modules)

    def _pool_for(self, job: Job) -> Pool | None:
        """The least used pool that has room for ``job``; ``None`` where all are full.

        One job may always run, because its worker checks each cell.
        """
        share = self._share(job)
        rooms = []
        for number, pool in enumerate(self._pools):
            shares = [running.share for running in self._running.values() if running.pool is pool]
            if not shares or (len(shares) < pool.slot.workers and sum(shares) + share <= 1 + ROUNDING):
                rooms.append((sum(shares), number))
        return self._pools[min(rooms)[1]] if rooms else None

    def _share(self, job: Job) -> float:
        """The share of its GPU, or of this machine's memory that was free before the first job, that ``job`` takes."""
        on_gpu = job.cells[0].device != "cpu"
        return gpu_share(job) if on_gpu else (job.bytes + PROCESS_BYTES) / self._usable

    def _is_stuck(self, pool: Pool, gone: set[int]) -> bool:
        """Whether no job of ``pool`` has a worker, and one has died (with exit code 0, after which the pool starts
        another) or none has come for long."""
        jobs = [running for running in self._running.values() if running.pool is pool]
        if not jobs or any(running.process is not None for running in jobs):
            return False
        oldest = min(running.began for running in jobs)
        return bool(gone - pool.workers.serving) or time.monotonic() - oldest > STARTING

    def _submit(self, pool: Pool, job: Job) -> None:
        self._submitted += 1
        path = self._folder / f"{self._submitted}.jsonl"
        path.touch()
        try:
            with without_ctrl_c():  # only this process gets it, and stops the workers
                future = pool.processes.schedule(worker.measure, args=(job, path))
        except RuntimeError as error:  # pebble's error for a pool that broke between two jobs
            raise PoolBroken(pool) from error
        neighbours = [running for running in self._running.values() if running.pool is pool]
        for running in neighbours:
            running.crowded = True
        self._running[future] = Running(job, pool, self._share(job), path, crowded=bool(neighbours))

    def _read(self, running: Running) -> Iterator[Ended]:
        """Cells that have ended since the last call. A cell is yielded again if the caller did not resume after it."""
        with running.path.open("rb") as lines:
            lines.seek(running.read)
            for line in lines:
                if not line.endswith(b"\n"):  # being written, or the worker died while writing
                    break
                if running.process is None:
                    running.process, running.taken = int(line), time.monotonic()
                    running.pool.workers.serving.add(running.process)
                else:
                    result = CellResult.of_line(line.decode())
                    if running.may_fit_alone(result.status):
                        self._run_alone(running.job.single(result.index))
                    else:
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
                status, message = self._death(running.pool.workers.exit_code(running.process))
        except ProcessExpired as error:
            status, message = self._death(error.exitcode)
        except BrokenProcessPool as error:
            raise PoolBroken(running.pool) from error
        except Exception as error:  # the worker's own error, not a task's, such as a full disk
            status, message = failure(error.with_traceback(None))
            message = f"in the worker: {message}"
        yield from self._read(running)
        again: list[Job] = []
        if len(running.job.cells) > 1:
            again = running.job.singles_left(running.ended)
        elif not running.ended and running.may_fit_alone(status):
            self._run_alone(running.job)
        elif not running.ended:
            yield Ended(
                running.job,
                CellResult(index=0, status=status, message=message, seconds=time.monotonic() - running.began),
            )
        del self._running[future]
        running.path.unlink()
        return again

    def _run_alone(self, job: Job) -> None:
        """Run a job again after all others, with nothing else in memory."""
        self._crowded_out.append(replace(job, bytes=ALL_MEMORY))

    def _death(self, code: int | None) -> tuple[Status, str]:
        """The status and the reason of a cell whose worker ended with ``code``. Each kill by the kernel explains one
        death."""
        if code != -SIGKILL:
            return death(code)
        before, now = self._oom_kills, oom_kills()
        if before is None or now is None:
            return death(code)
        self._oom_kills = min(before + 1, now)
        return death(code, out_of_memory=now > before)

    def _stop(self) -> None:
        for pool in self._pools:
            pool.stop()
        self._pools, self._kind = [], None

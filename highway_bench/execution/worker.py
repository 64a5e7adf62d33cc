"""Worker: what a worker process does with a job. The result of each cell is written to the job's file at once.

Results leave the worker through this file, so they are safe even if the next cell kills the process. A worker runs jobs
of one task, mode and thread count only, and exits with the process that started it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from highway_bench.errors import USER_ERRORS
from highway_bench.execution.failure import failure, lack_of_memory, take_this_process_first
from highway_bench.execution.job import CellResult, Job
from highway_bench.measure.processes import exit_with_parent
from highway_bench.os_names import pin
from highway_bench.provenance import Identity, identity
from highway_bench.provenance.machine import identity_with
from highway_bench.registry import load_plugin
from highway_bench.results.schema import Status
from highway_bench.source import SourceCheck
from highway_bench.tasks.base import Task, tasks
from highway_bench.tasks.measurement import Outcome, deciding
from highway_bench.terminal import replace_unprintable
from highway_bench.training.checkpoint import CheckpointFolder

BROKEN_GPU = 70  # exit code of a worker whose GPU context is lost

_start_error: BaseException | None = None  # why ``start`` failed in this process
_sources = SourceCheck()


def start(
    task: str,
    threads: int,
    plugins: Sequence[str],
    modules: Sequence[str] = (),
    gpu: str | None = None,
    cores: Sequence[int] = (),
) -> None:
    """Prepare this process before anything is timed: threads, plug-ins, and everything that the task imports.

    What it prints goes to stderr, as stdout has the command's results. Where memory runs out, the kernel ends this
    process before the one that started it.

    ``modules`` are those that the jobs run through. Their sources are read before they are imported, except those that
    this module itself imports. ``gpu`` is the only GPU that this process may use, as ``CUDA_VISIBLE_DEVICES`` names it;
    ``cores`` are those that it is pinned to.

    An error is saved and becomes the result of every job. Raising it would end the process, and the pool would start
    another one without end.
    """
    global _start_error, _sources
    exit_with_parent()  # otherwise a worker whose runner was killed would disturb the next run
    take_this_process_first()
    replace_unprintable()  # of what a user's layer prints; while stdout still is what Python opened
    with suppress(OSError):  # a stream that was closed before Python started
        os.dup2(2, 1)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu
    if cores:
        pin(cores)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # repeatable products; read at the first one
    _sources = SourceCheck(modules)
    try:
        for plugin in plugins:
            load_plugin(plugin)
        tasks.get(task)
        torch = sys.modules.get("torch")  # None for a task without networks
        if torch is not None:
            from highway_bench.measure.precision import ieee_float32

            torch.set_num_threads(threads)
            ieee_float32()
    except USER_ERRORS as error:
        _start_error = error


def measure(job: Job, path: Path) -> str:
    """Measure the cells of ``job``, and write one line for each to ``path``.

    The first line of the file is the id of this process, so that the engine can check whether it is alive.

    A task gives the error of a cell with the cell. An exception of the group itself belongs to no known cell. If more
    than one cell is left at that point, they are left without results, to be run one by one. The return value is then
    the exception's message; it is empty where every cell has a result. Raises ``OSError`` where the file cannot be
    written.
    """
    with path.open("a", encoding="utf-8") as out:
        out.write(f"{os.getpid()}\n")
        out.flush()
        error = _sources.changed(job.sources) or _start_error
        if error is not None:
            for index in range(len(job.cells)):
                _write(out, job, _failed(index, *failure(error)))
            return ""
        message = _measure(tasks.get(job.task), job, out)
        _release_memory()  # what a waiting worker holds is missing to the others on its GPU
        return message


def _measure(task: Task, job: Job, out: IO[str]) -> str:
    waiting = [index for index in range(len(job.cells)) if not _refused(task, job, index, out)]
    if not waiting:
        return ""
    began = time.perf_counter()
    keys = dict(zip(job.cells, job.keys, strict=True))
    cells = [job.cells[index] for index in waiting]
    outcomes = task.measure(cells, None if job.checkpoints is None else CheckpointFolder(job.checkpoints, keys))
    while True:
        try:
            outcome = next(outcomes, None)
            changed = _sources.changed(job.sources)
            if changed is not None:
                raise changed
        except BaseException as error:  # all that the task raises becomes a result, an interrupt too
            status, message = failure(error)
            if len(waiting) == 1:
                _write(out, job, _failed(waiting.pop(), status, message, time.perf_counter() - began))
            error.__traceback__ = None  # it holds the failed cell's tensors
            _release_memory()
            return message if waiting else ""
        if outcome is None:
            break
        seconds, began = time.perf_counter() - began, time.perf_counter()
        for index in [index for index in waiting if job.cells[index] == outcome.cell]:
            _write(out, job, _result(task, index, outcome, seconds))
            waiting.remove(index)
        if outcome.error is not None:
            del outcome  # its traceback holds the failed cell's tensors
            _release_memory()
    for index in waiting:
        _write(out, job, _failed(index, Status.FAILED, f"task {task.name!r} gave no result for this cell"))
    return ""


def _refused(task: Task, job: Job, index: int, out: IO[str]) -> bool:
    """Whether the cell at ``index`` cannot be run, for lack of memory or because its network cannot be built; its
    result is then written."""
    began = time.perf_counter()
    try:
        message = lack_of_memory(task, job.cells[index], compiles="compile" in job.mode)
        status = Status.OOM
    except USER_ERRORS as error:
        status, message = failure(error)
    if message is None:
        return False
    _write(out, job, _failed(index, status, message, time.perf_counter() - began))
    return True


def _result(task: Task, index: int, outcome: Outcome, seconds: float) -> CellResult:
    if outcome.error is not None:
        return _failed(index, *failure(outcome.error), seconds)
    try:
        measurements = tuple(measurement.finite() for measurement in outcome.measurements)
        for metric in {one.metric for one in measurements}:
            task.metric(metric)
        if len({(one.metric, one.axis, one.index) for one in measurements}) < len(measurements):
            raise ValueError(f"task {task.name!r} gives two values for one metric, axis and index")
        if not measurements:
            raise ValueError(f"task {task.name!r} measured nothing")
    except USER_ERRORS as error:  # an error in the task: only this cell fails
        return _failed(index, *failure(error), seconds)
    return CellResult(
        index=index,
        status=deciding(measurements).status,
        message=deciding(measurements).message,
        seconds=seconds,
        params=outcome.params,
        flops_per_item=outcome.flops_per_item,
        measurements=measurements,
    )


def _failed(index: int, status: Status, message: str | None, seconds: float = 0.0) -> CellResult:
    return CellResult(index=index, status=status, message=message, seconds=seconds)


def _write(out: IO[str], job: Job, result: CellResult) -> None:
    out.write(replace(result, identity=_identity_of(job.cells[result.index].device)).line())
    out.flush()


def _identity_of(device: str) -> Identity | None:
    """The identity of this machine; ``None`` for a GPU that this process has not used or that has failed."""
    if not device.startswith("cuda"):
        return identity(device)
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():  # the cell failed before it used the GPU
        return None
    try:
        return identity_with(torch.cuda.get_device_name(device))
    except RuntimeError:  # after some kernel errors every later CUDA call fails
        return None


def _release_memory() -> None:
    """Free the cached blocks of the CUDA allocator, for the next cell after a failure and for other processes.

    Some errors of a kernel, such as a failed assertion, break the process's GPU context, and every later cell would
    fail in it. Such a process ends here; another worker takes its cells.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError:
            os._exit(BROKEN_GPU)

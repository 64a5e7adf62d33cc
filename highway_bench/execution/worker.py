"""Worker: what a worker process does with a job. Every cell that ends is written to the job's file at once.

The file is how results leave the worker: a cell that has ended is safe there, whatever the next one does to the
process. A worker serves jobs of one task, mode and thread count only, and dies with the process that started it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO

from highway_bench.errors import USER_ERRORS
from highway_bench.execution.failure import failure
from highway_bench.execution.job import CellResult, Job
from highway_bench.execution.source_check import SourceCheck
from highway_bench.provenance import Identity, identity
from highway_bench.provenance.machine import identity_with
from highway_bench.registry import load_plugin
from highway_bench.results.schema import Status
from highway_bench.tasks.base import Task, tasks
from highway_bench.tasks.measurement import Outcome, worst
from highway_bench.training.checkpoint import CheckpointFolder

_unready: BaseException | None = None  # why ``start`` could not get this process ready
_sources = SourceCheck()


def start(task: str, threads: int, plugins: Sequence[str], modules: Sequence[str] = ()) -> None:
    """Get this process ready: threads, plug-ins, and everything the task imports, before any clock runs.

    ``modules`` are those that its jobs run through: their source is read before any of them is imported, those aside
    that this module itself imports.
    What goes wrong is kept and becomes the result of every job; a process that died here would be started again and
    again.
    """
    global _unready, _sources
    threading.Thread(target=_die_with_parent, name="parent watch", daemon=True).start()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    _sources = SourceCheck(modules)
    try:
        for plugin in plugins:
            load_plugin(plugin)
        tasks.get(task)
        torch = sys.modules.get("torch")  # a task without networks does without
        if torch is not None:
            from highway_bench.measure.precision import ieee_float32

            torch.set_num_threads(threads)
            ieee_float32()
    except USER_ERRORS as error:
        _unready = error


def measure(job: Job, path: Path) -> str:
    """Measure ``job``'s cells, writing a line a cell to ``path``; why cells were left, empty where none was.

    The first line is this process's id: who waits for the results can see whether it is still there.

    A task gives each cell's error with the cell. An exception from the group itself does not say whose it is: if more
    than one cell has not ended by then, they are left to be run singly. Raises ``OSError`` where it cannot write.
    """
    with path.open("a", encoding="utf-8") as out:
        out.write(f"{os.getpid()}\n")
        out.flush()
        refused = _sources.changed(job.sources) or _unready
        if refused is not None:
            for place in range(len(job.cells)):
                _end(out, job, _failed(place, *failure(refused)))
            return ""
        return _measure(tasks.get(job.task), job, out)


def _measure(task: Task, job: Job, out: IO[str]) -> str:
    waiting = list(range(len(job.cells)))
    began = time.perf_counter()
    keys = dict(zip(job.cells, job.keys, strict=True))
    outcomes = task.measure(job.cells, None if job.checkpoints is None else CheckpointFolder(job.checkpoints, keys))
    while True:
        try:
            outcome = next(outcomes, None)
            changed = _sources.changed(job.sources)
            if changed is not None:
                raise changed
        except BaseException as error:  # whatever the task raises is its cells' own, an interrupt too
            _release_memory()
            status, message = failure(error)
            if len(waiting) > 1:
                return message
            for place in waiting:
                _end(out, job, _failed(place, status, message, time.perf_counter() - began))
            return ""
        if outcome is None:
            break
        seconds, began = time.perf_counter() - began, time.perf_counter()
        for place in [place for place in waiting if job.cells[place] == outcome.cell]:
            _end(out, job, _result(task, place, outcome, seconds))
            waiting.remove(place)
        if outcome.error is not None:
            del outcome  # its traceback holds the failed cell's tensors
            _release_memory()
    for place in waiting:
        _end(out, job, _failed(place, Status.FAILED, f"task {task.name!r} gave no result for this cell"))
    return ""


def _result(task: Task, place: int, outcome: Outcome, seconds: float) -> CellResult:
    if outcome.error is not None:
        return _failed(place, *failure(outcome.error), seconds)
    try:
        found = tuple(measurement.finite() for measurement in outcome.measurements)
        for metric in {one.metric for one in found}:
            task.metric(metric)
        if len({(one.metric, one.axis, one.index) for one in found}) < len(found):
            raise ValueError(f"task {task.name!r} gives two values of one metric at one place")
        if not found:
            raise ValueError(f"task {task.name!r} measured nothing")
    except USER_ERRORS as error:  # a task's mistake: its cell failed, the others did not
        return _failed(place, *failure(error), seconds)
    return CellResult(
        place=place,
        status=worst(found).status,
        message=worst(found).message,
        seconds=seconds,
        params=outcome.params,
        flops_per_item=outcome.flops_per_item,
        measurements=found,
    )


def _failed(place: int, status: Status, message: str | None, seconds: float = 0.0) -> CellResult:
    return CellResult(place=place, status=status, message=message, seconds=seconds)


def _end(out: IO[str], job: Job, result: CellResult) -> None:
    out.write(replace(result, identity=_ran_on(job.cells[result.place].device)).line())
    out.flush()


def _ran_on(device: str) -> Identity | None:
    """The identity of this machine; ``None`` for a GPU that this process has not used, or that answers no more."""
    if not device.startswith("cuda"):
        return identity(device)
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():  # a cell that failed before
        return None
    try:
        return identity_with(torch.cuda.get_device_name(device))
    except RuntimeError:  # after some errors of a kernel every later call fails
        return None


def _release_memory() -> None:
    """After a failure: give the CUDA allocator's cached blocks back, for the next cell's sake."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _die_with_parent() -> None:
    """A worker whose runner was killed would go on measuring for nobody, beside the next run. Waits without waking."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)

"""Processes that measure: further ones of this interpreter, their wait for a core, and their allocator.

Some conditions last as long as a process, such as where its memory lies. They would look like a property of what is
timed in it, so a time is taken in several processes, which stay alive between calls.

Run delay is the time in which a thread was ready to run and waited for a core. Linux counts it for each thread, in
nanoseconds (the second number of ``schedstat`` in the thread's folder of /proc, described in the kernel's documentation
of scheduler statistics). On a machine that other processes share, it is nearly all of the difference between a thread's
wall time and the time of its work.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from ..os_names import pin, pread, usable_cores

MOST_PROCESSES = 6  # of one sampling; each takes seconds to start, and a few hundred MiB
OWN = "/proc/thread-self/schedstat"
THREADS = Path("/proc/self/task")
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # of <malloc.h>
MOST = 2**31 - 1  # bytes: parameters of mallopt are ints
PAD = 64 * 2**20  # bytes by which the heap grows at a time

P = ParamSpec("P")
T = TypeVar("T")


class ProcessDied(RuntimeError):
    """A process ended during a call, with this ``status``."""

    def __init__(self, status: int | None) -> None:
        super().__init__(f"the process ended with status {status}")
        self.status = status


class Served(NamedTuple):
    """A process, and this side's end of the pipe to it."""

    process: BaseProcess
    calls: Connection


_served: dict[int, Served] = {}
_starting = threading.Lock()


@contextmanager
def without_working_folder() -> Iterator[None]:
    """Python processes that start meanwhile do not import from the working folder: its ``types.py`` would replace the
    standard library's before anything runs. Processes of ``multiprocessing`` then have this process's ``sys.path``, and
    do not run its script, whose definitions travel by value."""
    variable = "PYTHONSAFEPATH"
    with _starting:  # engines start processes in threads
        before, main = os.environ.get(variable), sys.modules["__main__"]
        os.environ[variable] = "1"
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            del os.environ[variable]
            if before is not None:
                os.environ[variable] = before


def call_in(number: int, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call ``function`` in the process of this ``number``, which starts with its first call, and return its result.

    Function, arguments and result are pickled. An exception of the call is raised here. Where the process dies,
    ``ProcessDied`` is raised, and the next call of its number starts another one. The processes end with this one, even
    if it is killed.
    """
    if number not in _served:
        _served[number] = _started(f"timing {number}")
    served = _served[number]
    try:
        result: T = _answer(served, None, (function, args, options))
        return result
    finally:
        if not served.process.is_alive():
            del _served[number]


def call_once(seconds: float, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call ``function`` in a process of its own, which ends with the call, and return its result.

    Function, arguments and result are pickled. An exception of the call is raised here. Raises ``ProcessDied`` where
    the process dies, and ``TimeoutError`` where there is no result after ``seconds``.
    """
    served = _started("once")
    try:
        result: T = _answer(served, seconds, (function, args, options))
        return result
    finally:
        served.process.kill()
        served.process.join()
        served.calls.close()


def _answer(served: Served, seconds: float | None, call: tuple[Any, ...]) -> Any:
    """What a process returns for a call, or raises."""
    try:
        served.calls.send(call)
        is_there = served.calls.poll(seconds)
        returned, value = served.calls.recv() if is_there else (False, TimeoutError(f"no result after {seconds:g} s"))
    except (EOFError, OSError):
        served.process.join()
        raise ProcessDied(served.process.exitcode) from None
    if not returned:
        raise value
    return value


def sample_processes(
    sample: Callable[[int], object], is_precise: Callable[[], bool], *, least: int, most_seconds: float
) -> list[str]:
    """Call ``sample`` with the number 0, for this process, and then with 1, 2, …, for other processes.

    It is called ``least`` times, and further until ``is_precise``, ``most_seconds`` are over, or there are
    ``MOST_PROCESSES``. Returns the errors of calls for other processes; after ``least`` of them no further call is
    made.
    """
    begin = time.monotonic()
    failures: list[str] = []
    sample(0)
    number = 1
    while number < least or not is_precise():
        if number >= least and (number >= MOST_PROCESSES or time.monotonic() - begin >= most_seconds):
            break
        try:
            sample(number)
        except Exception as error:  # of another process, whose error must not cost the samples of this one
            failures.append(f"{type(error).__name__}: {error}")
            if len(failures) == least:
                break
        number += 1
    return failures


def _started(name: str) -> Served:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), name=name, daemon=True)
    with without_working_folder():
        process.start()
    there.close()  # so that the pipe ends with the process
    return Served(process, here)


def exit_with_parent() -> None:
    """Make this process exit as soon as its parent does, even if that is killed, and ignore Ctrl-C, which goes to all
    processes."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def leave() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=leave, name="exit with parent", daemon=True).start()


def _serve(calls: Connection) -> None:
    """Answer calls until the other end of the pipe is closed."""
    exit_with_parent()
    with suppress(EOFError, OSError):
        while True:
            function, args, options = calls.recv()
            answer: tuple[bool, Any]
            try:
                answer = True, function(*args, **options)
            except BaseException as error:  # raised again by the caller
                answer = False, error
            calls.send(answer)


class ThreadClock:
    """A clock for work of the thread that creates it: its wall time less its run delay, in seconds.

    Where the kernel does not count the delay, it is the thread's CPU time, which also leaves out the time in which the
    thread was blocked. Only that thread may read it.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        if delay_is_counted():
            self._file = os.open(OWN, os.O_RDONLY)

    def __call__(self) -> float:
        if self._file is None:
            return time.thread_time()
        before = self._delay()
        while True:  # a wait between the two readings would count in one of them alone; it mostly ends a system call
            now, after = time.perf_counter(), self._delay()
            if before == after:
                return now - 1e-9 * after
            before = after

    def _delay(self) -> int:
        assert self._file is not None
        return _nanoseconds(pread(self._file, 64, 0))

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)


def delay_is_counted() -> bool:
    """Whether the kernel counts the run delay of threads."""
    return not math.isnan(process_delay())


def process_delay() -> float:
    """Seconds of run delay of all threads of this process, added up; NaN where the kernel does not count it."""
    try:
        return 1e-9 * sum(_nanoseconds((thread / "schedstat").read_bytes()) for thread in THREADS.iterdir())
    except (OSError, IndexError, ValueError):
        return math.nan


def _nanoseconds(schedstat: bytes) -> int:
    """The run delay in the contents of ``schedstat``."""
    return int(schedstat.split()[1])


@contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """Let this thread, and those that it starts, run on one core only; ``None`` changes nothing.

    ``core`` counts the cores that the process may use, and starts again after the last one.
    """
    if core is None:
        yield
        return
    before = usable_cores()
    pin({before[core % len(before)]})
    try:
        yield
    finally:
        pin(before)


def keep_freed_memory() -> bool:
    """Make this process keep the memory that it frees, for its next allocations; whether the C library can.

    glibc returns large freed buffers to the kernel, and a step that allocates them again pays for page faults. How many
    it has depends on where a process's buffers happen to lie, so that the ratio of two steps differed by 6 % from
    process to process (bidirectional LSTM on two CPU cores), against 1.5 % with an allocator that keeps freed memory.
    Applies to allocations from now on. Elsewhere than with glibc on Linux, nothing changes.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all([mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, MOST), mallopt(M_TOP_PAD, PAD)])

"""Run delay: the time in which a thread was ready to run and waited for a core.

Linux counts it for each thread, in nanoseconds (the second number of ``schedstat`` in the thread's folder of /proc,
described in the kernel's documentation of scheduler statistics). On a machine that other processes share, it is nearly
all of the difference between a thread's wall time and the time of its work.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..os_names import pin, pread, usable_cores

OWN = "/proc/thread-self/schedstat"
THREADS = Path("/proc/self/task")


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

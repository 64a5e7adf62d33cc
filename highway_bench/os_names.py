"""Names that only Linux or only POSIX has, and what is used where they are absent. No other module uses such a name."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psutil

SIGKILL: Final[int] = getattr(signal, "SIGKILL", 9)
SIGPIPE: Final[int] = getattr(signal, "SIGPIPE", 13)
PINS_THREADS: Final = hasattr(os, "sched_setaffinity")
pread: Final[Any] = getattr(os, "pread", None)  # called for files of Linux's /proc alone
_affinity: Final[Any] = getattr(psutil.Process(), "cpu_affinity", None)  # of this process; macOS has none


def usable_cores() -> list[int]:
    """The numbers of the cores that this thread may use, in order; on Windows those of this process."""
    if PINS_THREADS:
        return sorted(os.sched_getaffinity(0))
    return sorted(_affinity()) if _affinity else list(range(os.cpu_count() or 1))


def pin(cores: Collection[int]) -> None:
    """Restrict this thread, and those that it starts, to ``cores``; on Windows this process. macOS pins nothing."""
    if PINS_THREADS:
        os.sched_setaffinity(0, cores)
    elif _affinity:
        _affinity(list(cores))


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Threads and processes that start meanwhile get no Ctrl-C: they inherit the mask. Windows has none."""
    mask: Any = getattr(signal, "pthread_sigmask", lambda *_: None)
    before = mask(getattr(signal, "SIG_BLOCK", 0), {signal.SIGINT})
    try:
        yield
    finally:
        mask(getattr(signal, "SIG_SETMASK", 0), before)


def level3_cache() -> int:
    """Bytes of the last-level cache; 0 where the system or its C library does not say."""
    return os.sysconf("SC_LEVEL3_CACHE_SIZE") if "SC_LEVEL3_CACHE_SIZE" in getattr(os, "sysconf_names", ()) else 0

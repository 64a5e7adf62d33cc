"""Lock: one command at a time in a checkout's working folder, where the next would remove what the first one reads.

The kernel holds it for as long as the process lives, so that it needs no cleaning up after a kill. A command that finds
it taken waits, and says so.
"""

from __future__ import annotations

import fcntl
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from highway_bench.history.paths import Paths

Given = ParamSpec("Given")
Found = TypeVar("Found")
_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())  # a thread's own: others wait as well


def alone(work: Callable[Concatenate[Paths, Given], Found]) -> Callable[Concatenate[Paths, Given], Found]:
    """Let ``work`` have its paths's working folder to itself; it may call others that want the same."""

    @functools.wraps(work)
    def waits(paths: Paths, /, *given: Given.args, **named: Given.kwargs) -> Found:
        with _locked(paths.working):
            return work(paths, *given, **named)

    return waits


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if folder in _held.get():
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            sys.stderr.write(f"waiting for process {lock.read().strip()}, which works in {folder}\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        before = _held.set(_held.get() | {folder})
        try:
            yield
        finally:
            _held.reset(before)

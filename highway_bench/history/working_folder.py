"""The working folder's lock: one command at a time, since a second one would remove files that the first one reads."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from filelock import Timeout

from highway_bench.errors import writing
from highway_bench.history.paths import Paths
from highway_bench.provenance.lock import file_lock, holder

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def exclusive(
    function: Callable[Concatenate[Paths, Arguments], Returned],
) -> Callable[Concatenate[Paths, Arguments], Returned]:
    """Decorator: hold the working folder's lock while ``function`` runs, which may call other such functions.

    If another process holds the lock, a line on stderr names that process, and the call waits.
    """

    @functools.wraps(function)
    def locked(paths: Paths, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        path = paths.working / "lock"
        lock = file_lock(path, reentrant=True)
        with writing(paths.working):
            paths.working.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                sys.stderr.write(f"waiting for process {holder(path)}, which is using {paths.working}\n")
                lock.acquire()
        try:
            return function(paths, *args, **kwargs)
        finally:
            lock.release()

    return locked

"""Further processes of this interpreter, which stay alive between calls.

Some conditions last as long as a process, such as where its memory lies. They would look like a property of what is
timed in it, so a time is taken in several processes.
"""

from __future__ import annotations

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
from types import ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

MOST_PROCESSES = 6  # of one sampling; each takes seconds to start, and a few hundred MiB

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
    served = _served.get(number) or _start(number)
    try:
        served.calls.send((function, args, options))
        returned, value = served.calls.recv()
    except (EOFError, OSError):
        served.process.join()
        del _served[number]
        raise ProcessDied(served.process.exitcode) from None
    if not returned:
        raise value
    result: T = value
    return result


def call_once(seconds: float, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call ``function`` in a process of its own, which ends with the call, and return its result.

    Function, arguments and result are pickled. An exception of the call is raised here. Raises ``ProcessDied`` where
    the process dies, and ``TimeoutError`` where there is no result after ``seconds``.
    """
    served = _started("once")
    try:
        served.calls.send((function, args, options))
        if not served.calls.poll(seconds):
            raise TimeoutError(f"no result after {seconds:g} s")
        returned, value = served.calls.recv()
    except (EOFError, ConnectionError):
        served.process.join()
        raise ProcessDied(served.process.exitcode) from None
    finally:
        served.process.kill()
        served.process.join()
        served.calls.close()
    if not returned:
        raise value
    result: T = value
    return result


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


def _start(number: int) -> Served:
    _served[number] = _started(f"timing {number}")
    return _served[number]


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

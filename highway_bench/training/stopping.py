"""Stopping: on SIGTERM, a run with a checkpoint ends between two steps, never within one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_sigterm() -> Iterator[Callable[[], bool]]:
    """Defer SIGTERM until the end of this context. The yielded function says whether the signal has arrived.

    At the end of the context the signal is sent again, which ends the process. Raises ``SystemExit`` if the process
    survives it: the code after the context must not run either. The sender may kill the process soon: a pool of workers
    waits three seconds. Signals can be handled in the main thread only; in any other thread nothing is deferred.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    received = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield lambda: received
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)  # None if it was not set from Python
        if received:
            os.kill(os.getpid(), signal.SIGTERM)
            raise SystemExit(128 + signal.SIGTERM)

"""Stopping: a run that keeps its state ends between two steps where its process is told to end, and not amid one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def termination_put_off() -> Iterator[Callable[[], bool]]:
    """While this lasts a SIGTERM waits, and what is given says whether one came; at its end the process gets it.

    Whoever sent it may kill the process soon after: a pool of workers waits three seconds. Only a main thread can put
    it off; in any other nothing is, and nothing ever came.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    told = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        told.set()

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield told.is_set
    finally:
        signal.signal(signal.SIGTERM, before)
        if told.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

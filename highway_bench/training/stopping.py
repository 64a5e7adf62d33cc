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
    """While this lasts a SIGTERM waits, and what is given says whether one came; then the process ends here.

    Whoever sent it may kill the process soon after: a pool of workers waits three seconds. Only a main thread can put
    it off; in any other nothing is, and nothing ever came. Raises ``SystemExit`` where the signal that is passed on
    does not end the process: what comes after was told to stop as well.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    told = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal told
        told = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield lambda: told
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)  # none where it was not set from Python
        if told:
            os.kill(os.getpid(), signal.SIGTERM)
            raise SystemExit(128 + signal.SIGTERM)

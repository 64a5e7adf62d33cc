"""File locks. The kernel releases them when their process dies, so a kill leaves nothing to clean up.

The holder writes its process id into the file, so that another process can name it in a message.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from filelock import FileLock


def file_lock(path: Path, *, reentrant: bool = False) -> FileLock:
    """The lock at ``path``, not yet acquired. ``acquire(timeout=0)`` raises ``filelock.Timeout`` if it is held.

    The thread that holds a ``reentrant`` lock may acquire it again.
    """
    return FileLock(
        path,
        thread_local=reentrant,
        is_singleton=reentrant,
        fallback_to_soft=False,  # a lock that is only a file would outlive a kill
        on_acquired=_write_holder,
    )


def holder(path: Path) -> str:
    """The id of the process that holds the lock at ``path``, or held it last; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def is_held(path: Path) -> bool:
    """Whether a process holds the lock at ``path``. For that moment, no other process can acquire it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _write_holder(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

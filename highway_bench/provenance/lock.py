"""File locks. The kernel releases them when their process dies, so a kill leaves nothing to clean up.

The holder writes its process id into the file, so that another process can name it in a message.
"""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, lock_descriptor


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
        with path.open("rb") as file:
            file.seek(1)
            return file.read().decode().strip()
    except OSError:
        return ""


def is_held(path: Path) -> bool:
    """Whether a process holds the lock at ``path``. For that moment, no other process can acquire it."""
    try:
        # NFS locks only what is open for writing, and another user's lock can only be read.
        descriptor = os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY)
    except OSError:
        return False
    try:
        return not lock_descriptor(descriptor, blocking=False)
    finally:
        os.close(descriptor)


def _write_holder(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f"\n{os.getpid()}\n".encode())  # no other process reads the locked first byte on Windows

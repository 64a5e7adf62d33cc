"""The C library's allocator while steps are timed.

glibc returns large freed buffers to the kernel, and a step that allocates them again pays for page faults. How many it
has depends on where a process's buffers happen to lie, so that the ratio of two steps differed by 6 % from process to
process (bidirectional LSTM on two CPU cores), against 1.5 % with an allocator that keeps freed memory.
"""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # of <malloc.h>
MOST = 2**31 - 1  # bytes: parameters of mallopt are ints
PAD = 64 * 2**20  # bytes by which the heap grows at a time


def keep_freed_memory() -> bool:
    """Make this process keep the memory that it frees, for its next allocations; whether the C library can.

    Applies to allocations from now on. Elsewhere than with glibc on Linux, nothing changes.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all([mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, MOST), mallopt(M_TOP_PAD, PAD)])

"""The kernel's OOM killer: how many processes it has ended, and which of ours it takes first.

The memory cgroup of this process counts only its own: the machine's counter also grows with a process of another
container.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from highway_bench.provenance.free_memory import memory_cgroups

OF_MACHINE = Path("/proc/vmstat")
COUNTERS = {1: "memory.oom_control", 2: "memory.events"}  # the file of a memory cgroup, by version
ADJUSTMENT = Path("/proc/self/oom_score_adj")
FIRST = 500  # of 1000: before a process of equal size that has the usual 0


def oom_kills() -> int | None:
    """Processes that the kernel has ended for lack of memory, in the memory cgroup of this process where there is one,
    else on this machine; ``None`` where the kernel does not say."""
    for path in (*(group.folder / COUNTERS[group.version] for group in memory_cgroups()), OF_MACHINE):
        with suppress(OSError):
            lines = path.read_text(encoding="ascii").splitlines()
            return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
    return None


def take_this_process_first() -> None:
    """Let the kernel end this process, and not the one that started it, where memory runs out.

    A process that Ray starts has the highest value already; among equals the kernel ends the largest.
    """
    with suppress(OSError, ValueError):  # not Linux
        inherited = int(ADJUSTMENT.read_text(encoding="ascii"))
        ADJUSTMENT.write_text(str(max(FIRST, inherited)), encoding="ascii")

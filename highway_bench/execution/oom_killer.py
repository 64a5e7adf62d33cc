"""The kernel's OOM killer: how many processes it has ended, and which of ours it takes first.

The memory cgroup of this process counts only its own: the machine's counter also grows with a process of another
container.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

OF_MACHINE = Path("/proc/vmstat")
CGROUP = Path("/proc/self/cgroup")
MOUNTED = Path("/sys/fs/cgroup")
ADJUSTMENT = Path("/proc/self/oom_score_adj")
FIRST = 500  # of 1000: before a process of equal size that has the usual 0


def oom_kills() -> int | None:
    """Processes that the kernel has ended for lack of memory, in the memory cgroup of this process where there is one,
    else on this machine; ``None`` where the kernel does not say."""
    for path in (*counters_of_cgroup(), OF_MACHINE):
        with suppress(OSError):
            lines = path.read_text(encoding="ascii").splitlines()
            return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
    return None


def counters_of_cgroup() -> list[Path]:
    """The files that count for the memory cgroup of this process, in versions 1 and 2; they may be missing."""
    try:
        lines = CGROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    files = []
    for _, controllers, group in (line.split(":", 2) for line in lines):
        if "memory" in controllers.split(","):
            files.append(MOUNTED / "memory" / group.lstrip("/") / "memory.oom_control")
        elif not controllers:
            files.append(MOUNTED / group.lstrip("/") / "memory.events")
    return files


def take_this_process_first() -> None:
    """Let the kernel end this process, and not the one that started it, where memory runs out.

    A process that Ray starts has the highest value already; among equals the kernel ends the largest.
    """
    with suppress(OSError, ValueError):  # not Linux
        inherited = int(ADJUSTMENT.read_text(encoding="ascii"))
        ADJUSTMENT.write_text(str(max(FIRST, inherited)), encoding="ascii")

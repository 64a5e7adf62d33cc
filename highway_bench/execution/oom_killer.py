"""The kernel's OOM killer: how many processes it has ended, and which of ours it takes first."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

COUNTERS = Path("/proc/vmstat")
ADJUSTMENT = Path("/proc/self/oom_score_adj")
FIRST = 500  # of 1000: before a process of equal size that has the usual 0


def oom_kills() -> int | None:
    """Processes that the kernel has ended for lack of memory, on this machine and in any of its memory cgroups, since
    it started; ``None`` where the kernel does not say."""
    try:
        lines = COUNTERS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def take_this_process_first() -> None:
    """Let the kernel end this process, and not the one that started it, where memory runs out.

    A process that Ray starts has the highest value already; among equals the kernel ends the largest.
    """
    with suppress(OSError, ValueError):  # not Linux
        inherited = int(ADJUSTMENT.read_text(encoding="ascii"))
        ADJUSTMENT.write_text(str(max(FIRST, inherited)), encoding="ascii")

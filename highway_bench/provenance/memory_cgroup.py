"""The memory cgroups that this process is in: the kernel's groups whose memory is limited and counted together."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

GROUPS: Final = Path("/proc/self/cgroup")
MOUNTED: Final = Path("/sys/fs/cgroup")


class MemoryCgroup(NamedTuple):
    """A group's ``folder`` below that of all groups, ``top``, in ``version`` 1 or 2; a container may hide it."""

    version: int
    top: Path
    folder: Path


def memory_cgroups() -> list[MemoryCgroup]:
    """The groups of this process, of either version; none on a system other than Linux."""
    try:
        lines = GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers and "memory" not in controllers.split(","):
            continue
        top = MOUNTED / "memory" if controllers else MOUNTED
        found.append(MemoryCgroup(1 if controllers else 2, top, top / path.lstrip("/")))
    return found

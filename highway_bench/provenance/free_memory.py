"""Free memory: of this machine or its container, and of a GPU; and how memory is written in messages.

A GPU's model, memory and number types are read before a run in a short process of its own. Reading them initialises
CUDA. That takes some hundred MB for as long as the process lives, and blocks every worker from a GPU that serves one
process at a time. The process that starts the workers must therefore not read them itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

from highway_bench.errors import BadInput

READ = """
import json, sys, torch
with torch.cuda.device(sys.argv[1]):
    about = torch.cuda.get_device_properties(sys.argv[1])
    bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    free, memory = torch.cuda.mem_get_info()
tf32 = about.major >= 8  # from Ampere on
print(json.dumps({"name": about.name, "memory": memory, "free": free, "bfloat16": bfloat16, "tf32": tf32}))
"""
GROUPS: Final = Path("/proc/self/cgroup")
MOUNTED: Final = Path("/sys/fs/cgroup")
USABLE: Final = 0.9
"""The share of free memory that measurements may take: a step needs more than its tensors, such as scratch buffers."""
PROCESS_BYTES: Final = 400 * 2**20
"""Memory of a worker process with its libraries before it measures anything; on a GPU, of its CUDA context."""


@dataclass(frozen=True)
class Gpu:
    """A GPU's model, its memory in bytes, how much of it was free, and whether it computes in bfloat16 and in TF32."""

    name: str
    memory: int
    free: int
    bfloat16: bool
    tf32: bool


@cache
def gpu(device: str) -> Gpu:
    """The GPU called ``device``. Raises ``BadInput`` if torch has no CUDA or finds no such device."""
    return Gpu(**read_apart(READ, device, lacking=f"this machine has no device {device!r}"))


def read_apart(script: str, *words: str, lacking: str) -> Any:
    """The JSON that ``script`` prints at last, in a short process.

    Raises ``BadInput``, which begins with ``lacking``, where it fails.
    """
    done = subprocess.run([sys.executable, "-P", "-c", script, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BadInput(f"{lacking}: {reason}")
    return json.loads(done.stdout.strip().splitlines()[-1])


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


LIMIT_FILES: Final = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
"""Where a version of control groups has a group's limit and usage in bytes, and its word for cached files that the
kernel can drop."""


def usable_bytes(device: str) -> int:
    """Bytes of free memory on ``device`` that measurements may take.

    Raises ``BadInput`` for a GPU that this machine lacks.
    """
    return int(USABLE * free_bytes(device))


def worker_bytes(device: str, workers: int = 1) -> int:
    """Bytes for the tensors of each of ``workers`` processes that are yet to start; 0 or less where they do not fit.

    Raises ``BadInput`` for a GPU that this machine lacks.
    """
    return usable_bytes(device) // workers - PROCESS_BYTES


def free_bytes(device: str) -> int:
    """Bytes of free memory: of the machine, or less where a container or a job limits this process; or of a GPU.

    A GPU is read once, before this process uses it. Raises ``BadInput`` for a GPU that this machine lacks.
    """
    if device.startswith("cuda"):
        return gpu(device).free
    return min([psutil.virtual_memory().available, *room()])


def room() -> Iterator[int]:
    """The bytes left under each memory limit of the control groups that this process is in."""
    for version, top, group in memory_cgroups():
        for folder in (group, *group.parents):
            if folder.is_relative_to(top) and (left := left_in(folder, *LIMIT_FILES[version])) is not None:
                yield left


def left_in(group: Path, limit_file: str, usage_file: str, cached: str) -> int | None:
    """The bytes left under a group's limit; ``None`` where it has none, or is hidden from this container."""
    try:
        limit = (group / limit_file).read_text(encoding="ascii").strip()
        usage = int((group / usage_file).read_text(encoding="ascii"))
        counts = (group / "memory.stat").read_text(encoding="ascii")
    except OSError:
        return None
    if limit == "max":
        return None
    dropped = dict(line.split() for line in counts.splitlines()).get(cached, "0")
    return max(0, int(limit) - usage + int(dropped))


def gib(size: float) -> str:
    """Bytes in GiB, or below one GiB in MiB."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{max(size, 0) / 2**20:,.0f} MiB"

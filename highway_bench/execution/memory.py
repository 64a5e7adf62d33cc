"""Memory: whether a worker has it for a cell, before the cell runs, and whom the kernel ends where it runs out.

Without the check the kernel would end processes, or the machine would swap, before there is a row. The memory cgroup
of this process counts only its own kills: the machine's counter also grows with a process of another container.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from highway_bench.cell import Cell
from highway_bench.provenance.free_memory import USABLE, gib, memory_cgroups, usable_bytes
from highway_bench.tasks.base import Task

OF_MACHINE = Path("/proc/vmstat")
COUNTERS = {1: "memory.oom_control", 2: "memory.events"}  # the file of a memory cgroup, by version
ADJUSTMENT = Path("/proc/self/oom_score_adj")
FIRST = 500  # of 1000: before a process of equal size that has the usual 0


def lack_of_memory(task: Task, cell: Cell, *, compiles: bool) -> str | None:
    """Why ``cell`` is not run: its predicted bytes, and those that it may use; ``None`` where they suffice.

    ``compiles`` says that this process compiles cells. On a CPU no network runs for the prediction then, since the
    tracker of live tensors and compiled code must not share a process. Raises what building the cell's network raises.
    """
    on_gpu = cell.device.startswith("cuda")
    if on_gpu:  # a population that does not fit is halved there, so one network decides
        cell = cell.but(recipe={word: value for word, value in cell.recipe.items() if word != "together"})
    if not task.cost(cell).bytes:
        return None
    available = usable_on_gpu(cell.device) if on_gpu else usable_bytes(cell.device)
    if available is None:
        return None
    from highway_bench.tasks.predicted_costs import exceeding  # here: it imports torch, which not every task needs

    needed = exceeding(cell, available, by_closed_form=compiles and not on_gpu)
    return None if needed is None else f"not run: it needs about {gib(needed)}, and {gib(available)} may be used"


def usable_on_gpu(device: str) -> int | None:
    """Bytes that this process may still take on a GPU, its own cached blocks included; ``None`` without the GPU."""
    import torch

    if not torch.cuda.is_available():
        return None  # the measurement says so
    free, _ = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(USABLE * (free + cached))


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

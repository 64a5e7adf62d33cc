"""Memory check: whether a worker has the memory for a cell, before the cell runs.

Without it the kernel would end processes, or the machine would swap, before there is a row.
"""

from __future__ import annotations

from highway_bench.cell import Cell
from highway_bench.provenance.free_memory import USABLE, gib, usable_bytes
from highway_bench.tasks.base import Task


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

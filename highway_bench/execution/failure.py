"""Failure: which status and message an exception, a worker's end, or a lack of memory gives a cell.

Whether a worker has memory for a cell is checked before the cell runs. Without that the kernel would end processes, or
the machine would swap, before there is a row. The memory cgroup of this process counts only its own kills: the
machine's counter also grows with a process of another container.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from highway_bench.cell import Cell
from highway_bench.errors import HighwayBenchError
from highway_bench.os_names import SIGKILL
from highway_bench.provenance.free_memory import USABLE, gib, memory_cgroups, usable_bytes
from highway_bench.results.schema import Status
from highway_bench.source import in_library
from highway_bench.tasks.base import Skip, Task

# Phrases of a plain RuntimeError with which torch and CUDA's libraries report that memory ran out.
OUT_OF_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
LONGEST = 500  # characters of a message; those of compilers fill pages
OF_MACHINE = Path("/proc/vmstat")
COUNTERS = {1: "memory.oom_control", 2: "memory.events"}  # the file of a memory cgroup, by version
ADJUSTMENT = Path("/proc/self/oom_score_adj")
FIRST = 500  # of 1000: before a process of equal size that has the usual 0


def failure(error: BaseException) -> tuple[Status, str]:
    """The status of a cell that raised ``error``, and the reason in one line."""
    if isinstance(error, Skip):
        return Status.SKIPPED, _line(str(error)) or "no reason given"
    if isinstance(error, HighwayBenchError):
        return Status.FAILED, _line(str(error))
    for link in _chain(error):
        if _is_out_of_memory(link):
            return Status.OOM, _line(f"{type(link).__name__}: {link}")
    return Status.FAILED, _line(f"{type(error).__name__}: {error}") + _location(error)


def death(code: int | None, *, out_of_memory: bool | None = None) -> tuple[Status, str]:
    """The status and the reason of a cell whose worker ended with this exit code, or by the signal that it names.

    ``out_of_memory`` says whether the kernel's OOM killer ended a process meanwhile; ``None`` where that is unknown.
    """
    if code is None or code >= 0:
        return Status.CRASHED, f"the worker process left with exit code {code}"
    if -code == SIGKILL and out_of_memory:
        return Status.OOM, "out of memory: the kernel's OOM killer ended the worker process"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    unknown = -code == SIGKILL and out_of_memory is None
    hint = "; the system may have run out of memory" if unknown else ""
    return Status.CRASHED, f"the worker process was ended by signal {-code} ({name}){hint}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """``error`` and its causes: compilers wrap the errors of a graph."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        yield link
        seen.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(phrase in str(error) for phrase in OUT_OF_MEMORY)


def _line(text: str) -> str:
    """The first line of ``text`` that is not empty, cut to a length that fits a table."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= LONGEST else first[: LONGEST - 1] + "…"


def _location(error: BaseException) -> str:
    """The line that raised ``error``: the innermost outside libraries, else the innermost. Files by name only."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    own = [frame for frame in frames if not in_library(Path(frame.filename))]
    frame = (own or frames)[-1]
    return f" ({Path(frame.filename).name}, line {frame.lineno}, in {frame.name})"


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

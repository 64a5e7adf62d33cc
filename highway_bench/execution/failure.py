"""Failure: which status and message an exception, or a worker's end, gives a cell."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from highway_bench.errors import HighwayBenchError
from highway_bench.os_names import SIGKILL
from highway_bench.results.schema import Status
from highway_bench.source import in_library
from highway_bench.tasks.base import Skip

# Phrases of a plain RuntimeError with which torch and CUDA's libraries report that memory ran out.
OUT_OF_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
LONGEST = 500  # characters of a message; those of compilers fill pages


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

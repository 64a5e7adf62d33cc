"""Reproducing: a published result's cells measured, and its findings read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from highway_bench.cell import Cell
from highway_bench.errors import BadInput, UnknownName
from highway_bench.execution.progress import Event
from highway_bench.execution.runner import Summary, run_cells
from highway_bench.gpu import gpu
from highway_bench.plan.checks import check_data
from highway_bench.plan.estimate import Estimate, cell_bytes, estimate
from highway_bench.report.rows import prepared
from highway_bench.reproduce import Asked, Outcome, Reproduction, reproductions
from highway_bench.reproduce.base import with_needs
from highway_bench.reproduce.findings_page import folder_for, write_findings
from highway_bench.reproduce.studies import check_studies, save_studies
from highway_bench.running import AnyPath, opened
from highway_bench.tasks.from_cell import check_device, default_device


@dataclass(frozen=True)
class Reproduced:
    """What a reproduction gave: its outcome, how its cells ended, and the files that were written."""

    reproduction: Reproduction
    outcome: Outcome
    summary: Summary
    files: Sequence[Path]


def asked_for(name: str, *, scale: str | None = None, device: str | None = None, **numbers: Any) -> Asked:
    """The words of a command as ``Asked``. Raises ``BadInput`` for one that means nothing to this reproduction."""
    reproduction = reproductions.get(name)
    given = {word: value for word, value in numbers.items() if value not in (None, ())}
    for word in given:
        if word not in reproduction.takes:
            takes = ", ".join(sorted(reproduction.takes)) or "none"
            raise BadInput(f"{name} has no use for {word}; it takes {takes}")
    if scale is not None and scale not in reproduction.scales:
        raise UnknownName(f"scale of {reproduction.name}", scale, reproduction.scales)
    if device is not None:
        check_device(device)
    return Asked(scale=scale or reproduction.scales[0], device=device or default_device(), **given)


def cost(
    name: str, asked: Asked, *, store: AnyPath | None, workers: int | None = None, resume: bool = True
) -> Estimate:
    """What ``reproduce`` would measure, and roughly the time and memory that it would take. Writes nothing.

    Raises ``BadInput`` where the largest network does not fit this machine's memory.
    """
    cells = planned(name, asked)
    lanes = workers or len(os.sched_getaffinity(0))
    there = store if store is not None and Path(store).exists() else None
    with opened(there, read_only=there is not None) as kept:
        told = estimate(cells, kept, workers=lanes, resume=resume)
    check_memory(name, asked, told.bytes)
    return told


def check_memory(name: str, asked: Asked, needed: int) -> None:
    """Raise ``BadInput`` where one worker's network, or those that it trains together, are larger than the memory."""
    if asked.device == "cuda":
        there, place = gpu(asked.device).memory, "the GPU"
    else:
        there, place = psutil.virtual_memory().total, "this machine"
    if needed > there:
        raise BadInput(
            f"{name} at scale {asked.scale} needs about {needed / 2**30:,.1f} GiB at once, and {place} has "
            f"{there / 2**30:,.1f} GiB"
        )


def reproduce(
    name: str,
    asked: Asked,
    *,
    store: AnyPath | None = None,
    out: AnyPath | None = None,
    workers: int | None = None,
    resume: bool = True,
    on_event: Callable[[Event], None] | None = None,
    command: Sequence[str] | None = None,
) -> Reproduced:
    """Measure what the store lacks of a reproduction, and write findings, tables and figures into a folder of ``out``.

    The trials of its searches are saved as optuna's studies next to the store. Raises ``BadInput`` for data that are
    missing, and for a store whose searches were made with other priors, before anything is measured.
    """
    reproduction = reproductions.get(name)
    folder = None if out is None else folder_for(reproduction, asked, Path(out))
    cells = planned(name, asked)
    check_data(cells)
    check_memory(name, asked, max(map(cell_bytes, with_needs(cells))))
    with opened(store) as kept:
        check_studies(cells, kept.path)  # once this process has the store's lock, which covers the studies
        summary = run_cells(cells, kept, workers=workers, resume=resume, on_event=on_event, command=command)
        save_studies(cells, kept, summary.digests)
        rows = kept.frame(digest=sorted(set(summary.digests.values())))
        runs = kept.runs()
    outcome = reproduction.conclude(prepared(rows, runs), asked)
    every = list(with_needs(cells))
    files = [] if folder is None else write_findings(reproduction, outcome, every, rows, runs, folder)
    return Reproduced(reproduction, outcome, summary, files)


def planned(name: str, asked: Asked) -> list[Cell]:
    """The reproduction's cells; raises ``BadInput`` for a device that is not there."""
    cells = reproductions.get(name).cells(asked)
    for device in {cell.device for cell in cells}:
        check_device(device)
    return cells


def choices() -> Mapping[str, Reproduction]:
    """Every reproduction by name."""
    return {name: reproductions.get(name) for name in reproductions}

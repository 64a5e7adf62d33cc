"""Running a reproduction: measuring its cells and deriving its findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event
from highway_bench.execution.runner import Summary
from highway_bench.execution.schedule import FAILED, Schedule, is_named, with_needs
from highway_bench.frames.rows import prepared
from highway_bench.plan.estimate import Estimate
from highway_bench.plan.plan import AnyPath, Plan, RunResult, opened
from highway_bench.provenance.free_memory import gib, usable_bytes
from highway_bench.results.schema import COLUMNS
from highway_bench.studies.reproduce.base import Conclusion, Reproduction, reproductions
from highway_bench.studies.reproduce.findings_page import folder_for, write_findings
from highway_bench.studies.reproduce.request import Request
from highway_bench.tasks.from_cell import check_device


@dataclass(frozen=True)
class Reproduced:
    """The result of a reproduction: its conclusion, the summary of its cells, and the files that were written."""

    reproduction: Reproduction
    conclusion: Conclusion
    summary: Summary
    files: Sequence[Path]


def request_for(name: str, options: Mapping[str, Any]) -> Request:
    """The request with these ``options``; ``None`` and empty values are ignored.

    Raises ``UnknownName`` for a reproduction that does not exist, ``BadInput`` for an option that the reproduction does
    not take, and for a number below its minimum.
    """
    reproduction = reproductions.get(name)
    chosen = {option: value for option, value in options.items() if value not in (None, ())}
    for option in chosen:
        if option not in {*reproduction.takes, "scale", "device"}:
            takes = ", ".join(sorted(reproduction.takes)) or "none"
            raise BadInput(f"--{option.replace('_', '-')} does not apply to {name}, which takes {takes}")
    return Request(**chosen)


def cost(
    name: str,
    request: Request,
    *,
    store: AnyPath | None,
    workers: int | None = None,
    rerun: str = FAILED,
    strict_source: bool = False,
) -> Estimate:
    """What ``reproduce`` would usually measure, with a rough estimate of its time and memory. Writes nothing.

    Raises ``UnknownName`` for a scale that the reproduction does not have, ``BadInput`` for a missing device, and if
    the largest network to measure does not fit in its memory.
    """
    reproduction = reproductions.get(name)
    reproduction.scale_of(request)
    check_device(request.device)
    usual = reproduction.usual_cells(request, stored_rows(reproduction, request, store))
    plan = Plan(tuple(usual), reproduction.plugins)
    estimate = plan.estimate(store, workers=workers, rerun=rerun, strict_source=strict_source)
    check_memory(name, request, estimate.bytes)
    return estimate


def stored_rows(reproduction: Reproduction, request: Request, path: AnyPath | None) -> pd.DataFrame:
    """The rows that the store at ``path`` has of the reproduction's cells, and of those that follow from them."""
    rows = pd.DataFrame(columns=list(COLUMNS))
    if path is None or not Path(path).exists():
        return rows
    cells: list[Cell] = []
    with opened(path, read_only=True) as store:
        while len(known := reproduction.known_cells(request, rows)) > len(cells):
            cells = known
            schedule = Schedule(store)
            schedule.add(with_needs(cells))
            schedule.ready()
            rows = store.frame(digest=sorted(item.digest for item in schedule.items.values() if item.stored))
    return rows


def check_memory(name: str, request: Request, needed: int) -> None:
    """Raise ``BadInput`` if one worker's networks, ``needed`` bytes, do not fit in the device's free memory."""
    available = usable_bytes(request.device)
    if needed > available:
        scale = reproductions.get(name).scale_of(request)
        where = "the GPU" if request.device == "cuda" else "this machine"
        raise BadInput(
            f"{name} at scale {scale} needs about {gib(needed)} at once, and {where} has {gib(available)} free"
        )


def reproduce(
    name: str,
    request: Request,
    *,
    store: AnyPath | None = None,
    out: AnyPath | None = None,
    engine: AnyEngine = "local",
    workers: int | None = None,
    rerun: str = FAILED,
    strict_source: bool = False,
    on_event: Callable[[Event], None] | None = None,
    on_round: Callable[[int, int], None] = lambda number, cells: None,
    command: Sequence[str] | None = None,
) -> Reproduced:
    """Measure the cells that the store lacks, and write findings, tables and figures into a folder in ``out``.

    Where cells follow from the results of others, they are measured in rounds; ``on_round`` receives the number of each
    round and of its cells.

    Raises as ``cost`` does, and, before anything is measured, ``BadInput`` for missing data.
    """
    reproduction = reproductions.get(name)
    cost(name, request, store=store, workers=workers, rerun=rerun, strict_source=strict_source)
    folder = None if out is None else folder_for(reproduction, request, Path(out))
    with opened(store) as results:
        cells: dict[Cell, None] = {}
        parts: list[RunResult] = []
        new = reproduction.cells(request)
        while new:
            on_round(len(parts) + 1, len(new))
            part = Plan(tuple(new), reproduction.plugins)
            cells |= dict.fromkeys(part.needs)
            again = rerun if any(is_named(rerun, cell) for cell in part.needs) else FAILED
            parts.append(
                part.run(
                    results,
                    engine=engine,
                    workers=workers,
                    rerun=again,
                    strict_source=strict_source,
                    on_event=on_event,
                    command=command,
                )
            )
            rows = pd.concat([one.rows for one in parts], ignore_index=True)
            new = [cell for cell in reproduction.known_cells(request, rows) if cell not in cells]
        summary = reduce(add, [one.summary for one in parts])
        runs = results.runs()
    conclusion = reproduction.conclude(prepared(rows, runs), request)
    files = write_findings(reproduction, conclusion, list(cells), rows, runs, folder) if folder is not None else []
    return Reproduced(reproduction, conclusion, summary, files)

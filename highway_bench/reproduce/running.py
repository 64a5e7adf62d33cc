"""Running a reproduction: its cells measured, and its findings read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from highway_bench.errors import BadInput, UnknownName
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event
from highway_bench.execution.runner import Summary
from highway_bench.plan.estimate import Estimate
from highway_bench.plan.plan import AnyPath, Plan, opened
from highway_bench.provenance.gpu import gpu
from highway_bench.report.rows import prepared
from highway_bench.reproduce.base import Conclusion, Reproduction, reproductions
from highway_bench.reproduce.findings_page import folder_for, write_findings
from highway_bench.reproduce.request import Request
from highway_bench.reproduce.studies import check_studies, save_studies
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import check_device, default_device


@dataclass(frozen=True)
class Reproduced:
    """What a reproduction gave: its conclusion, how its cells ended, and the files that were written."""

    reproduction: Reproduction
    conclusion: Conclusion
    summary: Summary
    files: Sequence[Path]


def request_for(name: str, options: Mapping[str, Any]) -> Request:
    """The options that were given as a request. Raises ``BadInput`` for one that means nothing to this reproduction."""
    reproduction = reproductions.get(name)
    given = {word: value for word, value in options.items() if value not in (None, ())}
    for word in given:
        if word not in {*reproduction.takes, "scale", "device"}:
            takes = ", ".join(sorted(reproduction.takes)) or "none"
            raise BadInput(f"{name} has no use for {word}; it takes {takes}")
    if given.get("scale", reproduction.scales[0]) not in reproduction.scales:
        raise UnknownName(f"scale of {reproduction.name}", given["scale"], reproduction.scales)
    request = Request(**{"scale": reproduction.scales[0], "device": default_device(), **given})
    check_device(request.device)
    return request


def plan_of(name: str, request: Request) -> Plan:
    """The reproduction's cells; raises ``BadInput`` for a device that is not there."""
    cells = tuple(reproductions.get(name).cells(request))
    for device in {cell.device for cell in cells}:
        check_device(device)
    return Plan(cells)


def cost(
    name: str, request: Request, *, store: AnyPath | None, workers: int | None = None, resume: bool = True
) -> Estimate:
    """What ``reproduce`` would measure, and roughly the time and memory that it would take. Writes nothing.

    Raises ``BadInput`` where the largest network does not fit this machine's memory.
    """
    estimate = plan_of(name, request).estimate(store, workers=workers, resume=resume)
    check_memory(name, request, estimate.bytes)
    return estimate


def check_memory(name: str, request: Request, needed: int) -> None:
    """Raise ``BadInput`` where one worker's network, or those that it trains together, are larger than the memory."""
    if request.device == "cuda":
        there, device = gpu(request.device).memory, "the GPU"
    else:
        there, device = psutil.virtual_memory().total, "this machine"
    if needed > there:
        raise BadInput(
            f"{name} at scale {request.scale} needs about {needed / 2**30:,.1f} GiB at once, and {device} has "
            f"{there / 2**30:,.1f} GiB"
        )


def reproduce(
    name: str,
    request: Request,
    *,
    store: AnyPath | None = None,
    out: AnyPath | None = None,
    engine: AnyEngine = "local",
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
    folder = None if out is None else folder_for(reproduction, request, Path(out))
    plan = plan_of(name, request)
    check_memory(name, request, max(tasks.get(cell.task).cost(cell).bytes for cell in plan.needs))
    with opened(store) as given:
        check_studies(plan.cells, given.path)  # once this process has the store's lock, which covers the studies
        ran = plan.run(given, engine=engine, workers=workers, resume=resume, on_event=on_event, command=command)
        save_studies(plan.cells, given, ran.summary.digests)
        runs = given.runs()
    conclusion = reproduction.conclude(prepared(ran.rows, runs), request)
    files = []
    if folder is not None:
        files = write_findings(reproduction, conclusion, list(plan.needs), ran.rows, runs, folder)
    return Reproduced(reproduction, conclusion, ran.summary, files)

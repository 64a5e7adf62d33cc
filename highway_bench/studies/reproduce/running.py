"""Running a reproduction: measuring its cells, deriving its findings, and writing its files: the page of findings with
its provenance, the figures, and the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.errors import BadInput, writing
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event
from highway_bench.execution.runner import Summary
from highway_bench.execution.schedule import FAILED, with_needs
from highway_bench.frames.rows import prepared
from highway_bench.plan.estimate import Estimate
from highway_bench.plan.plan import AnyPath, Plan, RunResult, opened
from highway_bench.provenance.free_memory import gib, usable_bytes
from highway_bench.report.columns import Heading, markdown_table, shown_lines
from highway_bench.report.figures import svg_text
from highway_bench.report.format import counted
from highway_bench.report.page import provenance_of
from highway_bench.results.schema import COLUMNS
from highway_bench.studies.decide.rounds import Trainer
from highway_bench.studies.reproduce.base import Conclusion, Metrics, Reproduction, metrics_by_cell, reproductions
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
            raise BadInput(f"--{option.replace('_', '-')} does not apply to {name}; it takes {takes}")
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
            rows = Plan(tuple(cells), reproduction.plugins).stored(store)
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
    on_round: Callable[[int, Sequence[Cell]], None] = lambda number, cells: None,
    command: Sequence[str] | None = None,
) -> Reproduced:
    """Measure the cells that the store lacks, and write findings, tables and figures into a folder in ``out``.

    Where cells follow from the results of others, they are measured in rounds; ``on_round`` receives the number of each
    round and its cells.

    Raises as ``cost`` does, and, before anything is measured, ``BadInput`` for missing data.
    """
    reproduction = reproductions.get(name)
    cost(name, request, store=store, workers=workers, rerun=rerun, strict_source=strict_source)
    folder = None if out is None else folder_for(reproduction, request, Path(out))
    with opened(store) as results:
        trainer = Trainer(
            results, engine, workers, on_event, on_round, strict_source, rerun, reproduction.plugins, command
        )
        cells = reproduction.in_rounds(request, trainer.in_rounds(metrics_of))
        runs = results.runs()
    conclusion = reproduction.conclude(prepared(trainer.rows, runs), request)
    summary = reduce(add, [one.summary for one in trainer.results])
    if folder is None:
        return Reproduced(reproduction, conclusion, summary, [])
    files = write_findings(reproduction, conclusion, list(with_needs(cells)), trainer.rows, runs, folder)
    return Reproduced(reproduction, conclusion, summary, files)


def metrics_of(result: RunResult) -> dict[Cell, Metrics]:
    """The scalar metrics of each cell of a run that has a result."""
    metrics = metrics_by_cell(result.rows)
    return {cell: metrics[cell.identity] for cell in result.summary.digests if cell.identity in metrics}


# ----------------------------------------------------------------------------------------------------------- files


def folder_for(reproduction: Reproduction, request: Request, out: Path) -> Path:
    """The folder in ``out`` for this request, created if it is missing.

    Its name is ``figure1``, or ``figure1-trials-2`` for two trials, so a short run does not overwrite a full one.
    Raises ``BadInput`` if it cannot be created."""
    scale = reproduction.scale_of(request)
    parts = [reproduction.name, *([scale] if scale != reproduction.scales[0] else [])]
    for option in fields(Request):
        value = getattr(request, option.name)
        if value and option.name not in ("scale", "device"):
            parts += [option.name, *(map(str, value) if isinstance(value, tuple) else [str(value)])]
    folder = out / "-".join(parts)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_findings(
    reproduction: Reproduction,
    outcome: Conclusion,
    cells: Sequence[Cell],
    rows: pd.DataFrame,
    runs: Mapping[str, Mapping[str, Any]],
    folder: Path,
) -> list[Path]:
    """Write ``findings.md`` with every table, each figure as SVG, and the rows as CSV. Returns their paths.

    Raises ``BadInput`` if one of them cannot be written.
    """
    text, table = folder / "findings.md", folder / "rows.csv"
    figures = [folder / f"{picture.name}.svg" for picture in outcome.pictures]
    with writing(folder):
        for path, picture in zip(figures, outcome.pictures, strict=True):
            path.write_text(svg_text(picture), encoding="utf-8")
        text.write_text(markdown(reproduction, outcome, cells, provenance_of(rows, dict(runs))), encoding="utf-8")
        rows.to_csv(table, index=False)
    return [text, *figures, table]


def markdown(
    reproduction: Reproduction, outcome: Conclusion, cells: Sequence[Cell], provenance: Sequence[Mapping[str, Any]]
) -> str:
    """A Markdown page of findings, tables, figures, results that were not attempted, and runs with their facts."""
    lines = [f"# {reproduction.title}", "", f"Source: {reproduction.source}", "", f"Run: {budget(cells)}", ""]
    lines += markdown_table(
        ["published", "evidence", "measured", "verdict", "rule", "power", "source"],
        [[*one.entries, one.claim.source] for one in outcome.findings],
    )
    explained: set[Heading] = set()
    for shown in outcome.tables:
        lines += ["", f"## {shown.title}", "", *shown_lines(shown, explained)]
    for picture in outcome.pictures:
        lines += ["", f"![{picture.title}]({picture.name}.svg)", "", picture.caption]
    if reproduction.not_attempted:
        lines += ["", "## Not attempted", ""]
        lines += markdown_table(
            ["published", "why", "source"], [[one.published, one.why, one.source] for one in reproduction.not_attempted]
        )
    lines += ["", "## Measured by"]
    for run in provenance:
        lines += ["", f"Run {run['id']}", "", *(f"- {name}: {value}" for name, value in run["facts"])]
    return "\n".join(lines) + "\n"


def budget(cells: Iterable[Cell]) -> str:
    """The runs in a line: ``2 cells of trainability; highway; dense; 2 layers with the block; digits; 3 steps; …``."""
    every = list(cells)

    def span(name: str, values: Iterable[Any], rest: str = "") -> list[str]:
        known = sorted({value for value in values if value is not None})
        if not known:
            return []
        return [(counted(known[0], name) if len(known) == 1 else f"{known[0]} to {known[-1]} {name}s") + rest]

    def names(values: Iterable[str | None]) -> list[str]:
        distinct = list(dict.fromkeys(value for value in values if value))
        return [", ".join(distinct)] if distinct else []

    tuning = sum(cell.trial is not None and "own_rate" in cell.recipe for cell in every)
    trials = {cell.trial for cell in every if cell.trial is not None and "own_rate" not in cell.recipe}
    seeds = {cell.seed for cell in every if cell.trial is None}
    return "; ".join(
        [
            f"{counted(len(every), 'cell')} of {names(cell.task for cell in every)[0]}",
            *names(cell.block for cell in every),
            *names(cell.family for cell in every),
            *span("layer", (cell.depth for cell in every), " with the block"),
            *names(cell.dataset for cell in every),
            *span("step", (cell.recipe.get("steps") for cell in every)),
            *span("item", (cell.batch_size for cell in every), " a batch"),
            *span("trial", [len(trials) or None], " a search"),
            *span("tuning run", [tuning or None]),
            *span("seed", [len(seeds) or None]),
        ]
    )

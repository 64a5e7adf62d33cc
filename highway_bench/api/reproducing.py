"""Reproducing: a published result's cells measured, its findings read, its tables and figures written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import torch

from highway_bench.api.checks import check_data
from highway_bench.api.running import AnyPath, opened
from highway_bench.api.studies import open_studies, tell
from highway_bench.cell import Cell
from highway_bench.errors import BadInput, UnknownName
from highway_bench.report.figures import svg_text
from highway_bench.report.frame import prepared
from highway_bench.report.present import Shown
from highway_bench.reproduce import Asked, Outcome, Reproduction, reproductions
from highway_bench.reproduce._base import with_needs
from highway_bench.run.estimate import Estimate, cell_bytes, estimate
from highway_bench.run.progress import Event
from highway_bench.run.runner import Summary, run_cells
from highway_bench.tasks._network import cell_device, default_device


@dataclass(frozen=True)
class Reproduced:
    """What a reproduction gave: its outcome, how its cells ended, and the files that were written."""

    reproduction: Reproduction
    outcome: Outcome
    summary: Summary
    files: Sequence[Path]


def asked_for(name: str, *, scale: str | None = None, device: str | None = None,
              **numbers: Any) -> Asked:
    """The words of a command as ``Asked``. Raises ``BadInput`` for one that means nothing to this reproduction."""
    reproduction = reproductions.get(name)
    given = {word: value for word, value in numbers.items() if value not in (None, ())}
    for word in given:
        if word not in reproduction.takes:
            takes = ", ".join(sorted(reproduction.takes)) or "none"
            raise BadInput(f"{name} has no use for {word}; it takes {takes}")
    if scale is not None and scale not in reproduction.scales:
        raise UnknownName(f"scale of {reproduction.name}", scale, reproduction.scales)
    return Asked(scale=scale or reproduction.scales[0], device=device or default_device(), **given)


def cost(name: str, asked: Asked, *, store: AnyPath | None, workers: int | None = None,
         resume: bool = True) -> Estimate:
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
        there, place = torch.cuda.get_device_properties(0).total_memory, "the GPU"
    else:
        there, place = psutil.virtual_memory().total, "this machine"
    if needed > there:
        raise BadInput(f"{name} at scale {asked.scale} needs about {needed / 2**30:,.1f} GiB at once, and {place} has "
                       f"{there / 2**30:,.1f} GiB")


def reproduce(name: str, asked: Asked, *, store: AnyPath | None = None, out: AnyPath | None = None,
              workers: int | None = None, resume: bool = True, on_event: Callable[[Event], None] | None = None,
              command: Sequence[str] | None = None) -> Reproduced:
    """Measure what the store lacks of a reproduction, and write findings, tables and figures into ``out``/``name``.

    A search's trials are kept as optuna's studies beside the store. Raises ``BadInput`` for data that are missing, and
    for a store whose searches were made with other priors, before anything is measured.
    """
    reproduction = reproductions.get(name)
    cells = planned(name, asked)
    check_data(cells)
    check_memory(name, asked, max(map(cell_bytes, with_needs(cells))))
    with opened(store) as kept:
        studies = open_studies(cells, Path(store) if store is not None else None)  # once the store is ours to write
        summary = run_cells(cells, kept, workers=workers, resume=resume, on_event=on_event, command=command)
        tell(studies, kept, summary)
        rows = kept.frame(digest=sorted(set(summary.digests.values())))
        runs = kept.runs()
    outcome = reproduction.conclude(prepared(rows, runs), asked)
    files = written(reproduction, outcome, rows, Path(out)) if out is not None else []
    return Reproduced(reproduction, outcome, summary, files)


def planned(name: str, asked: Asked) -> list[Cell]:
    """The reproduction's cells; raises ``BadInput`` for a device that is not there."""
    cells = reproductions.get(name).cells(asked)
    for device in {cell.device for cell in cells}:
        cell_device(next(cell for cell in cells if cell.device == device))
    return cells


def written(reproduction: Reproduction, outcome: Outcome, rows: pd.DataFrame, out: Path) -> list[Path]:
    """Write ``findings.md`` with every table, each figure as SVG, and the rows as CSV, into a folder of ``out``."""
    folder = out / reproduction.name
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for picture in outcome.pictures:
        path = folder / f"{picture.name}.svg"
        path.write_text(svg_text(picture), encoding="utf-8")
        files.append(path)
    text = folder / "findings.md"
    text.write_text(markdown(reproduction, outcome), encoding="utf-8")
    table = folder / "rows.csv"
    rows.to_csv(table, index=False)
    return [text, *files, table]


def markdown(reproduction: Reproduction, outcome: Outcome) -> str:
    """Findings, tables, figures and what was not attempted, as a Markdown page."""
    lines = [f"# {reproduction.title}", "", f"Source: {reproduction.source}", ""]
    lines += _table(["published", "evidence", "measured", "verdict", "rule", "source"],
                    [[one.published, str(one.evidence), one.measured, str(one.verdict), one.rule, one.source]
                     for one in outcome.findings])
    for shown in outcome.tables:
        lines += ["", f"## {shown.title}", "", *_shown(shown)]
    for picture in outcome.pictures:
        lines += ["", f"![{picture.title}]({picture.name}.svg)", "", picture.caption]
    if reproduction.not_attempted:
        lines += ["", "## Not attempted", ""]
        lines += _table(["published", "why", "source"],
                        [[one.published, one.why, one.source] for one in reproduction.not_attempted])
    return "\n".join(lines) + "\n"


def _shown(shown: Shown) -> list[str]:
    lines = _table([one.text for one in shown.heads], [[entry.text for entry in row] for row in shown.entries])
    return lines + (["", shown.note] if shown.note else [])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(entries: Sequence[str]) -> str:
        return "| " + " | ".join(entry.replace("|", "\\|") for entry in entries) + " |"

    return [line(heads), line(["---"] * len(heads)), *map(line, rows)]


def choices() -> Mapping[str, Reproduction]:
    """Every reproduction by name."""
    return {name: reproductions.get(name) for name in reproductions}

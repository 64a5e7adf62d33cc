"""A reproduction's files: the page of findings with its provenance, the figures, and the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.errors import writing
from highway_bench.report.columns import Heading, markdown_table, shown_lines
from highway_bench.report.figures import svg_text
from highway_bench.report.format import counted
from highway_bench.report.page import provenance_of
from highway_bench.studies.reproduce.base import Conclusion, Reproduction
from highway_bench.studies.reproduce.request import Request


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

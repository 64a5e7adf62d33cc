"""Report: tables, figures and a page from a store of results. Never imports torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from highway_bench.report.console import print_summary
from highway_bench.report.page import draw, load, write_html, write_page
from highway_bench.report.tables import (
    Answer,
    answer,
    failures,
    memory_table,
    summary,
    throughput_table,
    trainability_table,
)
from highway_bench.results.store import Store

__all__ = [
    "Answer",
    "Report",
    "answer",
    "failures",
    "memory_table",
    "print_summary",
    "summary",
    "throughput_table",
    "trainability_table",
    "write_page",
    "write_report",
]


@dataclass(frozen=True)
class Report:
    """Where a report was written: the page, and each figure as a file of its own."""

    page: Path
    figures: tuple[Path, ...]


def write_report(source: pd.DataFrame | Store | str | os.PathLike[str], out_dir: str | os.PathLike[str]) -> Report:
    """Write the page of ``source`` and its figures, in ``figures/``, into the folder ``out_dir``.

    ``source`` is a store, its path, or a frame of its rows. Raises ``NothingMeasured`` where there are no rows,
    ``BadInput`` where the store cannot be read or the folder not be written.
    """
    rows, runs = load(source)
    pictures, undrawn = draw(rows)
    page = write_html(rows, runs, pictures, undrawn, Path(out_dir))
    folder = Path(out_dir) / "figures"
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{drawn.picture.name}.svg" for drawn in pictures]
    for path, drawn in zip(paths, pictures, strict=True):
        path.write_text(f"{drawn.svg}\n", encoding="utf-8")
    return Report(page, tuple(paths))

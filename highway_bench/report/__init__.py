"""Report: tables, figures and a page from a store of results. Never imports torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from highway_bench.report.console import print_summary
from highway_bench.report.page import draw, write_html
from highway_bench.report.results import Results, Source, open_results
from highway_bench.report.tables.answer import Answer

__all__ = ["Answer", "Report", "Results", "open_results", "print_summary", "write_page", "write_report"]


@dataclass(frozen=True)
class Report:
    """Where a report was written: the page, and each figure as a file of its own."""

    page: Path
    figures: tuple[Path, ...]


def write_report(source: Source | Results, out_dir: str | os.PathLike[str]) -> Report:
    """Write the page of ``source`` and its figures, in ``figures/``, into the folder ``out_dir``.

    ``source`` is a store, its path, a frame of its rows, or ``Results``. Raises ``NothingMeasured`` where there are no
    rows, ``BadInput`` where the store cannot be read or the folder not be written.
    """
    results = source if isinstance(source, Results) else open_results(source)
    pictures, undrawn = draw(results)
    page = write_html(results, pictures, undrawn, Path(out_dir))
    folder = Path(out_dir) / "figures"
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{drawn.picture.name}.svg" for drawn in pictures]
    for path, drawn in zip(paths, pictures, strict=True):
        path.write_text(f"{drawn.svg}\n", encoding="utf-8")
    return Report(page, tuple(paths))


def write_page(source: Source | Results, out_dir: str | os.PathLike[str]) -> Path:
    """Write the page of ``source`` alone into the folder ``out_dir``, as ``write_report`` does; the file's path."""
    results = source if isinstance(source, Results) else open_results(source)
    return write_html(results, *draw(results), Path(out_dir))

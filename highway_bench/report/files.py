"""The files of a report: its page, and its figures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from highway_bench.errors import writing
from highway_bench.frames.results import Results, Source, open_results
from highway_bench.pages import HISTORY, index
from highway_bench.report.page import PAGE, draw, write_html


@dataclass(frozen=True)
class Report:
    """The files of a written report: the page, and every figure."""

    page: Path
    figures: tuple[Path, ...]


def write_report(source: Source | Results, out_dir: str | os.PathLike[str]) -> Report:
    """Write the page of ``source`` into the folder ``out_dir`` and its figures into ``out_dir/figures``.

    ``source`` is a store, its path, a frame of its rows, or ``Results``. The page leads to asv's pages if they were
    published next to the folder. Raises ``NothingMeasured`` if there are no rows, and ``BadInput`` if the store cannot
    be read or the folder cannot be written.
    """
    results = source if isinstance(source, Results) else open_results(source)
    pictures, folder = draw(results), Path(out_dir)
    has_history = (folder.resolve().parent / index(HISTORY)).is_file()
    page = write_html(results, pictures, folder / PAGE, f"../{index(HISTORY)}" if has_history else "")
    paths = [folder / "figures" / f"{drawn.picture.name}.svg" for drawn in pictures]
    with writing(folder):
        (folder / "figures").mkdir(exist_ok=True)
        for path, drawn in zip(paths, pictures, strict=True):
            path.write_text(f"{drawn.svg}\n", encoding="utf-8")
    return Report(page, tuple(paths))


def write_one_file(source: Source | Results, path: str | os.PathLike[str]) -> Path:
    """Write the page of ``source`` to ``path`` as one file that leads to no other: to mail, or to attach to a paper.

    Raises as ``write_report`` does.
    """
    results = source if isinstance(source, Results) else open_results(source)
    return write_html(results, draw(results), Path(path))

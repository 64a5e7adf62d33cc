"""``highway-bench report``: tables and figures on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._options import STORE, AsJson, StorePath
from highway_bench.cli._output import print_json


def report(
    store: StorePath = STORE,
    out: Annotated[Path, typer.Option(help="The folder for the page and its figures.")] = Path("reports/page"),
    one_file: Annotated[
        Path | None,
        typer.Option(help="Write the page as this one HTML file instead, which leads to no other file: to mail."),
    ] = None,
    latex: Annotated[
        Path | None, typer.Option(help="Write the tables into this folder instead, as LaTeX with booktabs.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Write the page and figures of a store.

    Nothing is measured.
    """
    from highway_bench.frames.results import open_results
    from highway_bench.history.publish import link_report
    from highway_bench.pages import HISTORY, index
    from highway_bench.report.files import write_one_file, write_report
    from highway_bench.report.latex import write_latex

    results = open_results(store)
    page: Path | None = None
    figures: tuple[Path, ...] = ()
    tables: list[Path] = []
    if one_file is not None:
        page = write_one_file(results, one_file)
    if latex is not None:
        tables = write_latex(results, latex)
    if one_file is None and latex is None:
        written = write_report(results, out)
        page, figures = written.page, written.figures
        link_report(out.parent / index(HISTORY))
    if json:
        print_json({"page": page, "figures": figures, "tables": tables})
    else:
        typer.echo("\n".join(map(str, [*([page] if page is not None else []), *tables])))

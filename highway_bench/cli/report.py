"""``highway-bench report`` and ``serve``: tables and figures on a page, and all pages in a browser."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._options import STORE, AsJson, StorePath
from highway_bench.cli._output import show


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
    from highway_bench.history.site import link_report
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
    show({"page": page, "figures": figures, "tables": tables}, [*([page] if page else []), *tables], as_json=json)


def serve(
    reports: Annotated[Path, typer.Option(help="The folder of reports.")] = Path("reports"),
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Serve the report and asv's pages on 127.0.0.1, until Ctrl-C.

    Needs no network. Other machines have no access.
    """
    from highway_bench.history.site import address, pages, server

    with server(reports, port) as serving:
        for line in pages(serving, reports):
            typer.echo(line)
        typer.echo(f"serving {address(serving)} until Ctrl-C")
        if browser:
            # In a thread: a text browser in this console returns only when it is closed, and needs the server before.
            threading.Thread(target=webbrowser.open, args=(address(serving),), daemon=True).start()
        serving.serve_forever()

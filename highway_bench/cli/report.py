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
    json: AsJson = False,
) -> None:
    """Write the page and figures of a store.

    Nothing is measured.
    """
    from highway_bench.history.publish import HTML, link_report
    from highway_bench.report import write_report

    written = write_report(store, out)
    link_report(out.parent / HTML)
    if json:
        print_json({"page": written.page, "figures": written.figures})
    else:
        typer.echo(str(written.page))

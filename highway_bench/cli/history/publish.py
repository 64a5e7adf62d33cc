"""``highway-bench history publish``: write asv's pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import show
from highway_bench.cli.history.options import Root


def publish(
    site: Annotated[
        Path | None, typer.Option(help="Also copy all pages into this folder, to be uploaded to a web host.")
    ] = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Write asv's pages into reports/asv/html.

    With --site, also copy them, the report (highway-bench report) and the documentation (nox -s docs) into a folder.
    """
    from highway_bench.history.paths import Paths
    from highway_bench.history.publish import publish as write_pages
    from highway_bench.history.site import write_site

    paths = Paths.of(root)
    published = write_pages(paths)
    index, lines = published.html / "index.html", list(published.lines)
    if site is not None:
        lines += write_site(published.html.parents[1], site, str(paths.configuration()["project"]))
        index = site / "index.html"
    show(
        {"index": index, "machines": published.machines, "points": published.points, "lines": lines},
        [*lines, f"{published.points} points of {', '.join(published.machines)}: {index}"],
        as_json=json,
    )

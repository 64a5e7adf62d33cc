"""``highway-bench history publish``: write asv's pages."""

from __future__ import annotations

from pathlib import Path

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json
from highway_bench.cli.history.options import Root


def publish(json: AsJson = False, root: Root = Path(".")) -> None:
    """Write asv's pages into reports/asv/html."""
    from highway_bench.history import Paths
    from highway_bench.history.publish import publish as write_pages

    published = write_pages(Paths.of(root))
    if json:
        print_json(
            {
                "index": published.html / "index.html",
                "machines": published.machines,
                "points": published.points,
                "lines": published.lines,
            }
        )
        return
    for line in published.lines:
        typer.echo(line)
    typer.echo(f"{published.points} points of {', '.join(published.machines)}: {published.html / 'index.html'}")

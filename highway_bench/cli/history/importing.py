"""``highway-bench history import``: record results that were measured elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli.history.options import Root


def import_folder(
    folder: Annotated[Path, typer.Argument(help="Results measured elsewhere: a machine's folder, or one of several.")],
    commit: Annotated[str | None, typer.Option(help="The measured commit, for files that do not name it.")] = None,
    root: Root = Path("."),
) -> None:
    """Import results that were measured elsewhere into reports/asv/results."""
    from highway_bench.history import Paths
    from highway_bench.history.importing import import_results
    from highway_bench.history.publish import discover

    paths = Paths.of(root)
    imported = import_results(paths, folder, commit)
    for path in imported.written:
        typer.echo(str(path.relative_to(paths.root)))
    for line in imported.lines:
        typer.echo(line)
    discover(paths)  # the list of benchmarks, which decides what is shown

"""``highway-bench history import``: record results that were measured elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import show
from highway_bench.cli.history.options import Root


def import_folder(
    folder: Annotated[
        Path, typer.Argument(help="The folder that history run --out wrote, or one machine's folder in it.")
    ],
    commit: Annotated[str | None, typer.Option(help="The measured commit, for files that do not name it.")] = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Import results that were measured elsewhere into reports/asv/results."""
    from highway_bench.history.importing import import_results
    from highway_bench.history.paths import Paths

    paths = Paths.of(root)
    imported = import_results(paths, folder, commit)
    written = [path.relative_to(paths.root) for path in imported.written]
    show({"written": written, "lines": imported.lines}, [*written, *imported.lines], as_json=json)

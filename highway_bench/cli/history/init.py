"""``highway-bench history init``: start a history in a package of one's own."""

from __future__ import annotations

from pathlib import Path

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import show
from highway_bench.cli.history.options import Root


def init(json: AsJson = False, root: Root = Path(".")) -> None:
    """Write what asv needs to follow the blocks and layers that this package's pyproject.toml names as entry points.

    Commit the written files, then start with history run.
    """
    from highway_bench.history.init import write_history

    written = write_history(root)
    show({"written": written}, written, as_json=json)

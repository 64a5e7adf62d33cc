"""``highway-bench serve``: shows the report and asv's pages in a local browser."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer


def serve(
    reports: Annotated[Path, typer.Option(help="The folder of reports.")] = Path("reports"),
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Serve the report and asv's pages on 127.0.0.1, until Ctrl-C.

    Needs no network. Other machines have no access.
    """
    from highway_bench.history.serve import address, pages, server

    with server(reports, port) as serving:
        for line in pages(serving, reports):
            typer.echo(line)
        typer.echo(f"serving {address(serving)} until Ctrl-C")
        if browser:
            # In a thread: a text browser in this console returns only when it is closed, and needs the server before.
            threading.Thread(target=webbrowser.open, args=(address(serving),), daemon=True).start()
        serving.serve_forever()

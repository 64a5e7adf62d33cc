"""``highway-bench export``: a connection as one file of plain torch."""

from __future__ import annotations

from typing import Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json


def export(
    connection: Annotated[str, typer.Argument(help="The connection, as in 'highway-bench list blocks'.")],
    depth: Annotated[int, typer.Option(help="Number of layers.")] = 12,
    start: Annotated[str | None, typer.Option(help="How the weights begin; by default, its first start.")] = None,
    json: AsJson = False,
) -> None:
    """Print a connection as one file of plain torch.

    It joins layers of your own, (…, width) with the features last, and imports torch only.
    """
    from highway_bench.export.text import plain_torch

    text = plain_torch(connection, depth=depth, start=start)
    if json:
        print_json({"connection": connection, "depth": depth, "text": text})
    else:
        typer.echo(text, nl=False)

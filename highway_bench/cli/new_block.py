"""``highway-bench new-block``: the file of a block of yours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json


def new_block(
    name: Annotated[str, typer.Argument(help="Lower-case words joined by '-', such as my-gate.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where to write it; by default, among the package's blocks in its "
            "source checkout, and in this folder elsewhere."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Write the file of a new block.

    It works as it stands, and has one equation to fill in.
    """
    from highway_bench import scaffold

    written = scaffold.new_block(name, folder)
    if json:
        print_json({"name": written.name, "file": written.path, "in_tree": written.in_tree})
        return
    path = written.path.resolve()
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    plugin = "" if written.in_tree else f" --plugin {shown}"
    typer.echo(f"{shown}\n")
    typer.echo("Edit the line marked 'the equation', and what the file says of it. Then:\n")
    typer.echo(f"  highway-bench check {name}{plugin}")
    typer.echo(f"  highway-bench run --profile smoke --block plain --block {name}{plugin}")
    if not written.in_tree:
        typer.echo(
            f'\nIn a package of yours, the entry point\n\n  [project.entry-points."highway_bench.blocks"]\n'
            f'  {name} = "your_package.{written.path.stem}"\n\nmakes it known everywhere without --plugin.'
        )

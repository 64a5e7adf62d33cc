"""``highway-bench new-block``: writes the file of a new block."""

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
            "source checkout, elsewhere in this folder."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Write the file of a new block.

    It works unchanged, and has one equation to edit.
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
    typer.echo("Edit the line marked 'the equation', and the texts that describe it. Then:\n")
    typer.echo(f"  highway-bench check {name}{plugin}")
    typer.echo(f"  highway-bench run --profile smoke --block plain --block {name}{plugin}")
    if not written.in_tree:
        typer.echo(
            f'\nIn your own package, the entry point\n\n  [project.entry-points."highway_bench.blocks"]\n'
            f'  {name} = "your_package.{written.path.stem}"\n\nregisters it without --plugin.'
        )

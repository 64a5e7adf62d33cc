"""Options that several history commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Root = Annotated[Path, typer.Option(help="The checkout.")]
Device = Annotated[str | None, typer.Option(help="cpu or cuda; by default a GPU where there is one.")]
MachineName = Annotated[
    str | None,
    typer.Option(
        "--machine",
        envvar="HIGHWAY_BENCH_MACHINE",
        help="This machine's name in the history; by default its GPU's or CPU's.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick/--full", help="The cheap values only, or all.")]

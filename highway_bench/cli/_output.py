"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from highway_bench import terminal

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 160  # columns where the output is no terminal


def console() -> Console:
    """Where tables go. In a pipe or a log they may be wider than the 80 columns that rich takes there."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    note: str | None = None,
) -> None:
    """A table on stdout; the columns named in ``right`` are numbers. Text is printed as it is, without markup."""
    terminal.print_table(
        console(),
        title,
        heads,
        [["" if value is None else str(value) for value in row] for row in rows],
        [head in right for head in heads],
        note or "",
    )


def print_json(data: Any) -> None:
    """``data`` as JSON on stdout."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False, default=str))

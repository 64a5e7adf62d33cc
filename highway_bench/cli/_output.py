"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from highway_bench import terminal
from highway_bench.writing import writing

if TYPE_CHECKING:
    from rich.console import Console

    from highway_bench.report.columns import Head, Shown

JSON_SCHEMA = 5  # of what --json prints; raised when a key goes, or when its type or meaning changes
PIPED_WIDTH = 160  # columns where the output is no terminal
MOST_NAMED = 20  # cells that failed, or ended otherwise than expected, that are printed one by one


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


def print_json(data: Mapping[str, Any]) -> None:
    """``data`` as one JSON object on stdout, behind the number of its schema; paths are printed as text.

    Raises ``TypeError`` for any other value that JSON lacks: a number that JSON does not know must not become text.
    """
    typer.echo(json.dumps({"schema": JSON_SCHEMA, **data}, indent=2, allow_nan=False, default=os.fspath))


def write_tables(tables: Sequence[Shown], path: Path) -> None:
    """Write ``tables`` to ``path``: as LaTeX if the name of the file ends in ``.tex``, else in Markdown.

    Raises ``BadInput`` if the file cannot be written.
    """
    from highway_bench.report.latex import latex
    from highway_bench.report.markdown import shown_lines

    if path.suffix == ".tex":
        lines = [latex(one) for one in tables]
    else:
        explained: set[Head] = set()
        lines = [line for one in tables for line in (f"## {one.title}", "", *shown_lines(one, explained), "")]
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")

"""What commands print: lines and tables for people, JSON for programs. ``show`` prints a result as either."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from highway_bench import terminal
from highway_bench.json_values import finite
from highway_bench.writing import writing

if TYPE_CHECKING:
    from rich.console import Console

    from highway_bench.measure.statistics import IntervalEstimate
    from highway_bench.report.columns import Head, Shown

JSON_SCHEMA = 5  # of what --json prints; raised when a key goes, or when its type or meaning changes
PIPED_WIDTH = 160  # columns where the output is no terminal
MOST_NAMED = 20  # cells that failed, or ended otherwise than expected, that are printed one by one


@dataclass(frozen=True)
class Table:
    """A table for people; the columns named in ``right`` are numbers."""

    title: str
    heads: Sequence[str]
    rows: Iterable[Sequence[object]]
    right: Sequence[str] = ()
    note: str | None = None


Printed: TypeAlias = "str | Path | Table | Shown"  # what a result is printed by: lines of text, or a table


def show(
    data: Mapping[str, Any] | Callable[[], Mapping[str, Any]], parts: str | Path | Iterable[Printed], *, as_json: bool
) -> None:
    """Print a result on stdout: its ``data`` as JSON, or its ``parts`` for people.

    What the other form takes is not computed where ``data`` is a function, and ``parts`` a generator. Characters that
    would control the terminal are escaped.
    """
    if as_json:
        print_json(data() if callable(data) else data)
        return
    for part in [parts] if isinstance(parts, str | Path) else parts:
        if isinstance(part, str | Path):
            typer.echo(terminal.printable(str(part), "\n"))
        elif isinstance(part, Table):
            print_table(part.title, part.heads, part.rows, right=part.right, note=part.note)
        else:
            from highway_bench.report.console import print_table as print_shown

            print_shown(part, console())


def notes(lines: Iterable[str]) -> None:
    """Print ``lines`` on stderr, which is no part of a result."""
    for line in lines:
        typer.echo(terminal.printable(line), err=True)


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


def bounds(estimate: IntervalEstimate) -> dict[str, float | None]:
    """An estimate with its interval, as plain data; null where it has none."""
    return finite({"value": estimate.value, "low": estimate.low, "high": estimate.high})


def write_tables(tables: Sequence[Shown], path: Path) -> None:
    """Write ``tables`` to ``path``: as LaTeX if the name of the file ends in ``.tex``, else in Markdown.

    Raises ``BadInput`` if the file cannot be written.
    """
    from highway_bench.report.columns import shown_lines
    from highway_bench.report.latex import latex

    if path.suffix == ".tex":
        lines = [latex(one) for one in tables]
    else:
        explained: set[Head] = set()
        lines = [line for one in tables for line in (f"## {one.title}", "", *shown_lines(one, explained), "")]
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")

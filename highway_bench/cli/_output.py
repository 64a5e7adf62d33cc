"""What commands print: lines and tables for people, JSON for programs. ``show`` prints a result as either."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from highway_bench.errors import writing
from highway_bench.terminal import Heading, TextTable, finite, print_part, printable

if TYPE_CHECKING:
    from rich.console import Console

    from highway_bench.measure.statistics import IntervalEstimate

JSON_SCHEMA = 5  # of what --json prints; raised when a key goes, or when its type or meaning changes
PIPED_WIDTH = 160  # columns where the output is no terminal
FIRST = "0123456789+-−"  # characters of a number
MOST_NAMED = 20  # cells that failed, or ended otherwise than expected, that are printed one by one

Printed: TypeAlias = str | Path | TextTable
"""What a result is printed by: lines of text, and tables."""


def show(
    data: Mapping[str, Any] | Callable[[], Mapping[str, Any]], parts: Printed | Iterable[Printed], *, as_json: bool
) -> None:
    """Print a result on stdout: its ``data`` as JSON, or its ``parts`` for people.

    What the other form takes is not computed where ``data`` is a function, and ``parts`` a generator. Characters that
    would control the terminal are escaped.
    """
    if as_json:
        print_json(data() if callable(data) else data)
        return
    for part in [parts] if isinstance(parts, Printed) else parts:
        if isinstance(part, TextTable):
            print_part(part, console())
        else:
            typer.echo(printable(str(part), "\n"))


def print_json(data: Mapping[str, Any]) -> None:
    """``data`` as one JSON object on stdout, behind the number of its schema; paths are printed as text.

    Raises ``TypeError`` for any other value that JSON lacks: a number that JSON does not know must not become text.
    """
    typer.echo(json.dumps({"schema": JSON_SCHEMA, **data}, indent=2, allow_nan=False, default=os.fspath))


def notes(lines: Iterable[str]) -> None:
    """Print ``lines`` on stderr, which is no part of a result."""
    for line in lines:
        typer.echo(printable(line), err=True)


def console() -> Console:
    """Where tables go. In a pipe or a log they may be wider than the 80 columns that rich takes there."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED_WIDTH
    return Console(highlight=False, markup=False, emoji=False, width=width)


def text_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], *, note: str = "") -> TextTable:
    """A table of values under ``heads``. A column whose entries begin with a digit or a sign is one of numbers."""
    entries = tuple(tuple(map(text_of, row)) for row in rows)
    headings = [
        Heading(head, number=all(row[place][:1] in FIRST for row in entries)) for place, head in enumerate(heads)
    ]
    return TextTable("", title, tuple(headings), entries, note)


def records_table(title: str, records: Iterable[Mapping[str, Any]], keys: Iterable[str], note: str = "") -> TextTable:
    """A table of the values that ``records`` have under ``keys``, which are its heads."""
    keys = list(keys)
    rows = [[one[key] for key in keys] for one in records]
    return text_table(title, [key.replace("_", " ") for key in keys], rows, note=note)


def text_of(value: object) -> str:
    """A value in a table: a tuple as sizes, 16 × 28, options as name=value, metrics by name and unit."""
    if isinstance(value, tuple):
        return " × ".join(f"{size:,}" for size in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={inner}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(f"{one['name']} [{one['unit']}]" if isinstance(one, dict) else str(one) for one in value)
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value).replace("``", "")


def bounds(estimate: IntervalEstimate) -> dict[str, float | None]:
    """An estimate with its interval, as plain data; null where it has none."""
    return finite({"value": estimate.value, "low": estimate.low, "high": estimate.high})


def write_tables(tables: Sequence[TextTable], path: Path) -> None:
    """Write ``tables`` to ``path``: as LaTeX if the name of the file ends in ``.tex``, else in Markdown.

    Raises ``BadInput`` if the file cannot be written.
    """
    from highway_bench.report.columns import shown_lines
    from highway_bench.report.latex import latex

    if path.suffix == ".tex":
        lines = [latex(one) for one in tables]
    else:
        explained: set[Heading] = set()
        lines = [line for one in tables for line in (f"## {one.title}", "", *shown_lines(one, explained), "")]
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")

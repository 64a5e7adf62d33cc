"""What is printed: tables of text, values for JSON, and text in a terminal.

Where a table is too wide, text is wrapped and numbers stay whole. What a name contains cannot control the terminal.
"""

from __future__ import annotations

import codecs
import io
import math
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console

STUMP = 9  # first letters of a word that are never split
CONTROLS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that do something instead of being shown: control and format characters (cursor,
colour, direction of text), lone surrogates, separators of lines."""


class AsciiStream(io.TextIOWrapper):
    """A text stream in ASCII. It hides its ``buffer``: typer writes UTF-8 there, whatever the terminal's encoding."""

    buffer = None  # type: ignore[assignment]


def replace_unprintable() -> None:
    """From now on stdout and stderr print "?" for a character that their encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):  # a notebook's, or closed
            continue
        if codecs.lookup(stream.encoding).name == "ascii":
            stream.flush()
            raw = open(stream.fileno(), "wb", closefd=False)  # noqa: SIM115 (until the process ends)
            setattr(sys, name, AsciiStream(raw, encoding="ascii", errors="replace", line_buffering=True))
        else:
            stream.reconfigure(errors="replace")


def printable(text: str, allowed: str = "") -> str:
    r"""``text`` with its control characters, except ``allowed`` ones, as their escapes.

    Names and messages come from plug-ins, data files and other people's stores.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(
        one if one in allowed or unicodedata.category(one) not in CONTROLS else ascii(one)[1:-1] for one in text
    )


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """While the context is open, what is printed goes to stderr: a user's code runs, and stdout has the results."""
    with redirect_stdout(sys.stderr):
        yield


@dataclass(frozen=True)
class Heading:
    """The heading of a column, with a ``hint`` that explains it.

    ``ratio`` marks a column of measured ratios. The table's note explains the words in such a column.
    """

    text: str
    hint: str = ""
    number: bool = True
    ratio: bool = False


@dataclass(frozen=True)
class TextTable:
    """A table for print: every number is text with its unit. ``left_out`` counts the rows that were cut off at the end.

    ``name`` is that of its file, where it is written to one.
    """

    name: str
    title: str
    heads: tuple[Heading, ...]
    entries: tuple[tuple[str, ...], ...]
    note: str = ""
    left_out: int = 0


def print_part(part: str | TextTable, console: Console) -> None:
    """Print a line, or a table, without markup.

    A table that is still too wide exceeds the terminal's width: a split or omitted number would be misread.
    """
    from rich.table import Table
    from rich.text import Text

    if isinstance(part, str):
        console.print(Text(printable(part)))
        return
    rows = [[printable(entry, "\n") for entry in row] for row in part.entries]
    table = Table(
        title=Text(printable(part.title)),
        title_justify="left",
        title_style="bold",
        show_edge=False,
        pad_edge=False,
        caption=Text(part.note) if part.note else None,
        caption_justify="left",
    )
    for head, *entries in zip(part.heads, *rows, strict=True):
        justify: Literal["right", "left"] = "right" if head.number else "left"
        table.add_column(Text(head.text), justify=justify, overflow="fold", min_width=least_width(entries))
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table, crop=False)
    if part.left_out:
        console.print(Text(f"and {part.left_out:,} more"))


def finite(entry: Mapping[str, Any]) -> dict[str, Any]:
    """``entry`` with null for each number that JSON does not have."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in entry.items()
    }


def least_width(entries: Iterable[str]) -> int:
    """Terminal cells that a column needs: its longest word with a digit, or the first ``STUMP`` letters of its other
    words."""
    from rich.cells import cell_len

    return max(
        (
            cell_len(word if any(map(str.isdigit, word)) else word[:STUMP])
            for entry in entries
            for word in entry.split()
        ),
        default=0,
    )

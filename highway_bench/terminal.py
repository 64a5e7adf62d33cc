"""A table in a terminal: where it is too wide, text gives way and numbers stay whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

STUMP = 9  # letters of a word that stay together


def print_table(
    console: Console,
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[bool],
    note: str = "",
) -> None:
    """Print ``rows`` under ``heads``; ``numbers`` says which columns are such. Text is printed without markup.

    A table that does not fit runs over the terminal's edge: a number that is cut in two, or left out, would be misread.
    """
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    table = Table(
        title=Text(title),
        title_justify="left",
        title_style="bold",
        show_edge=False,
        pad_edge=False,
        caption=Text(note) if note else None,
        caption_justify="left",
    )
    for head, number, *entries in zip(heads, numbers, *rows, strict=True):
        table.add_column(
            Text(head), justify="right" if number else "left", overflow="fold", min_width=least_width(entries)
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table, crop=False)


def least_width(entries: Iterable[str]) -> int:
    """Cells that a column needs: those of its longest word with a digit in it, and a stump of its other words."""
    from rich.cells import cell_len

    return max(
        (
            cell_len(word if any(map(str.isdigit, word)) else word[:STUMP])
            for entry in entries
            for word in entry.split()
        ),
        default=0,
    )

"""A table in a terminal: where it is too wide, text gives way and numbers stay whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

BETWEEN = " │ "
STUMP = 6  # letters of a word that stay together
NUMBER = re.compile(r"[-+−]?\d\S*")
INTERVAL = re.compile(r" (?=\[)")


def print_table(console: Console, title: str, heads: Sequence[str], rows: Iterable[Sequence[str]],
                numbers: Sequence[bool], note: str = "") -> None:
    """Print ``rows`` under ``heads``; ``numbers`` says which columns are such. Text is printed without markup.

    A table that does not fit runs over the terminal's edge: a number that is cut in two, or left out, would be misread.
    """
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    found = widths(heads, rows, numbers, console.width)
    table = Table(title=Text(title), title_justify="left", title_style="bold", show_edge=False, pad_edge=False,
                  caption=Text(note) if note else None, caption_justify="left", width=sum(found) + _frame(found))
    for head, number, width in zip(heads, numbers, found, strict=True):
        table.add_column(Text(head), justify="right" if number else "left", overflow="fold", width=width)
    for row in rows:
        table.add_row(*(Text(INTERVAL.sub("\n", text) if number and len(text) > width else text)
                        for text, number, width in zip(row, numbers, found, strict=True)))
    console.print(table, crop=False)


def widths(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool], terminal: int) -> list[int]:
    """The columns' widths in a terminal so wide, the widest narrowed first.

    Text breaks between words, then an interval before its bracket, then words; a number never.
    """
    columns = [[head, *entries] for head, *entries in zip(heads, *rows, strict=True)]
    found = [_longest(column) for column in columns]
    room = terminal - _frame(found)
    steps = [[least(column, number) for column, number in zip(columns, numbers, strict=True)]
             for least in (_between_words, _before_brackets, _within_words)]
    if sum(steps[-1]) > room:  # nothing is won by breaking words
        steps = steps[:1]
    for floors in steps:
        while sum(found) > room:
            widest = max(range(len(found)), key=lambda place: (found[place] > floors[place], found[place]))
            if found[widest] <= floors[widest]:
                break
            found[widest] -= 1
    return found


def _between_words(column: Sequence[str], number: bool) -> int:
    head, *entries = column
    return max(_longest(head.split()), _longest(entries) if number else _words(entries))


def _before_brackets(column: Sequence[str], number: bool) -> int:
    head, *entries = column
    return max(_longest(head.split()), _parts(entries) if number else _words(entries))


def _within_words(column: Sequence[str], number: bool) -> int:
    entries = column[1:]
    whole = _parts(entries) if number else _longest(NUMBER.findall(" ".join(entries)))
    return max(whole, min(STUMP, _words(column)))


def _words(texts: Iterable[str]) -> int:
    return _longest(chain.from_iterable(text.split() for text in texts))


def _parts(entries: Iterable[str]) -> int:
    return _longest(chain.from_iterable(INTERVAL.split(entry) for entry in entries))


def _longest(texts: Iterable[str]) -> int:
    from rich.cells import cell_len

    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _frame(columns: Sequence[object]) -> int:
    return len(BETWEEN) * max(0, len(columns) - 1)

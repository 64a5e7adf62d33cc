"""The summary in a terminal: the most important tables of the page."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Console

from highway_bench.frames.results import Results
from highway_bench.report.choice.answers import answers, this_machine
from highway_bench.report.choice.lines import measured_here, taken
from highway_bench.report.columns import Heading, TextTable
from highway_bench.report.task_tables import depth_table, failure_table, task_tables
from highway_bench.terminal import print_part

BRIEF: Final = 18
"""Lines of a brief summary, of at most ``BRIEF_WIDTH`` characters each."""
BRIEF_WIDTH: Final = 100
FEW_METRICS: Final = 4
"""Of each task, if there are several."""


def brief(results: Results, width: int) -> Iterator[str]:
    """The first lines of the summary in a terminal of ``width`` columns, and how many more there are."""
    out = io.StringIO()
    narrow = Console(file=out, width=min(BRIEF_WIDTH, width))
    for part in summary(results, narrow=True):
        print_part(part, narrow)
    lines = out.getvalue().strip("\n").splitlines()
    shown = lines if len(lines) <= BRIEF else lines[: BRIEF - 1]
    yield from (line[:BRIEF_WIDTH] for line in shown)
    if left := len(lines) - len(shown):
        yield f"… {left} more lines: --details"


def summary(results: Results, *, narrow: bool = False) -> Iterator[str | TextTable]:
    """What to take, the depths to which connections train, what each task measured, and the failures; ``narrow`` leaves
    out columns."""
    table = answers(results)
    if line := this_machine(table):
        yield line
    taking = taken(measured_here(table), narrow=narrow)
    yield from explained([taking, depth_table(results), *task_tables(results, FEW_METRICS)])
    failed = failure_table(results)
    if failed.entries:
        yield from ("", failed)


def explained(tables: Iterable[TextTable]) -> Iterator[str | TextTable]:
    """The tables that have rows, each heading's hint once, which the page shows as a tool tip."""
    known: set[Heading] = set()
    for table in tables:
        if table.entries:
            yield from ("", table)
            if hints := [f"{head.text}: {head.hint}" for head in table.heads if head.hint and head not in known]:
                yield "; ".join(hints)
            known.update(table.heads)

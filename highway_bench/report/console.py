"""The summary in a terminal: the most important tables of the page."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Final, cast

import pandas as pd
from rich.console import Console
from rich.text import Text

from highway_bench import terminal
from highway_bench.frames.results import Results
from highway_bench.frames.rows import Runs
from highway_bench.report.choice.answers import answers, this_machine
from highway_bench.report.choice.lines import measured_here, taken
from highway_bench.report.columns import Heading, TextTable
from highway_bench.report.task_tables import depth_table, failure_table, task_tables

BRIEF: Final = 18
"""Lines of a brief summary, of at most ``BRIEF_WIDTH`` characters each."""
BRIEF_WIDTH: Final = 100
FEW_METRICS: Final = 4
"""Of each task, if there are several."""


def print_brief(rows: pd.DataFrame, console: Console, runs: Runs | None = None) -> None:
    """Print the first lines of the summary, and how many more there are."""
    narrow = Console(file=io.StringIO(), width=min(BRIEF_WIDTH, console.width), highlight=False)
    print_summary(rows, narrow, runs)
    lines = cast(io.StringIO, narrow.file).getvalue().strip("\n").splitlines()
    shown = lines if len(lines) <= BRIEF else lines[: BRIEF - 1]
    for line in shown:
        console.print(Text(line[:BRIEF_WIDTH]), highlight=False, soft_wrap=True)
    if left := len(lines) - len(shown):
        console.print(f"… {left} more lines: --details", highlight=False)


def print_summary(rows: pd.DataFrame | Results, console: Console, runs: Runs | None = None) -> None:
    """Print what to take, the depths to which connections train, what each task measured, and the failures.

    ``runs`` are the runs of the store of ``rows``. Raises ``NothingMeasured`` for an empty frame.
    """
    results = rows if isinstance(rows, Results) else Results(rows, runs or {})
    table = answers(results)
    if line := this_machine(table):
        console.print(line, highlight=False)
    tables = [taken(measured_here(table)), depth_table(results), *task_tables(results, FEW_METRICS)]
    print_tables([shown for shown in tables if shown.entries], console)
    failed = failure_table(results)
    if failed.entries:
        console.print()
        print_table(failed, console)


def print_tables(tables: Iterable[TextTable], console: Console) -> None:
    """Print several tables, each heading's hint once."""
    explained: set[Heading] = set()
    for shown in tables:
        console.print()
        print_table(shown, console)
        explain([head for head in shown.heads if head not in explained], console)
        explained.update(shown.heads)


def print_table(shown: TextTable, console: Console) -> None:
    """Print one table. Brackets in names are text, not markup."""
    terminal.print_table(
        console,
        shown.title,
        [head.text for head in shown.heads],
        shown.entries,
        [head.number for head in shown.heads],
        shown.note,
    )
    if shown.left_out:
        console.print(f"and {shown.left_out:,} more", highlight=False)


def explain(heads: Iterable[Heading], console: Console) -> None:
    """Print the hints of headings, which the page shows as tool tips."""
    hints = "; ".join(f"{head.text}: {head.hint}" for head in heads if head.hint)
    if hints:
        console.print(Text(hints, style="dim"), highlight=False)

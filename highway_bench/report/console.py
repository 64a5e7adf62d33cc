"""The summary in a terminal: the tables of the page, fewer of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from rich.console import Console
from rich.text import Text

from highway_bench import terminal
from highway_bench.report.columns import Head, Shown
from highway_bench.report.network_tables import count_tables, gate_tables
from highway_bench.report.rows import prepared
from highway_bench.report.sections import failure_table, summary_tables
from highway_bench.report.tables import answer


def print_summary(rows: pd.DataFrame, console: Console, runs: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """Print the answer, the summary (or what else was measured) and what failed.

    ``runs`` are those of the store that ``rows`` are from.
    Raises ``NothingMeasured`` for an empty frame.
    """
    frame = prepared(rows, runs)
    contest = None
    for sentence in answer(frame):
        if sentence.contest and sentence.contest != contest:
            console.print(Text(sentence.contest, style="bold"), highlight=False)
            contest = sentence.contest
        console.print(Text.assemble((sentence.lead, "bold"), " ", sentence.rest), highlight=False)
    explained: set[Head] = set()
    for shown in summary_tables(frame) or [*gate_tables(frame), *count_tables(frame)]:
        console.print()
        print_table(shown, console)
        explain([head for head in shown.heads if head not in explained], console)
        explained.update(shown.heads)
    failed = failure_table(frame)
    if failed.entries:
        console.print()
        print_table(failed, console)


def print_table(shown: Shown, console: Console) -> None:
    """One table. Names are printed as they are: brackets in them are no markup."""
    terminal.print_table(
        console,
        shown.title,
        [head.text for head in shown.heads],
        [[entry.text for entry in row] for row in shown.entries],
        [head.number for head in shown.heads],
        shown.note,
    )
    if shown.left_out:
        console.print(f"and {shown.left_out:,} more", highlight=False)


def explain(heads: Iterable[Head], console: Console) -> None:
    """What headings mean, those that have an explanation: where the page has a hint over each."""
    hints = "; ".join(f"{head.text}: {head.hint}" for head in heads if head.hint)
    if hints:
        console.print(Text(hints, style="dim"), highlight=False)

"""The summary in a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pandas as pd
from rich.console import Console

from highway_bench.frames.results import Results
from highway_bench.report.columns import TextTable
from highway_bench.report.console import BRIEF, BRIEF_WIDTH, brief, summary
from highway_bench.terminal import print_part
from tests.rows import cell, frame_of, memory


def printed(parts: Iterable[str | TextTable], width: int = 160) -> str:
    out = io.StringIO()
    for part in parts:
        print_part(part, Console(file=out, width=width))
    return out.getvalue()


def test_the_summary_has_the_answer_a_row_a_block_and_the_failures(standard: pd.DataFrame) -> None:
    text = printed(summary(Results(standard)))
    assert "Which connection to take" in text
    assert "highway-free" in text
    assert "stopped after 300 s" in text
    assert max(len(line) for line in text.splitlines()) <= 160


def test_a_brief_summary_counts_what_it_leaves_out(standard: pd.DataFrame) -> None:
    results = Results(standard)
    *lines, more = brief(results, 200)
    whole = printed(summary(results), BRIEF_WIDTH).strip("\n").splitlines()
    assert (len(lines), more) == (BRIEF - 1, f"… {len(whole) - len(lines)} more lines: --details")
    assert [line.rstrip() for line in lines] == [line[:BRIEF_WIDTH].rstrip() for line in whole[: BRIEF - 1]]


def test_brackets_in_names_are_no_markup() -> None:
    rows = memory(cell("memory", "[red]x[/red]", "dense", 4), 10.0)
    assert "[red]x[/red]" in printed(summary(Results(frame_of(rows))))

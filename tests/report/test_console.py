"""The summary in a terminal."""

from __future__ import annotations

import io

import pandas as pd
from rich.console import Console

from highway_bench.report.console import print_summary
from tests.rows import cell, frame_of, memory


def printed(frame: pd.DataFrame, width: int = 160) -> str:
    out = io.StringIO()
    print_summary(frame, Console(file=out, width=width))
    return out.getvalue()


def test_the_summary_has_the_answer_a_row_a_block_and_the_failures(standard: pd.DataFrame) -> None:
    text = printed(standard)
    assert "Which connection to take" in text
    assert "highway-free" in text
    assert "stopped after 300 s" in text
    assert max(len(line) for line in text.splitlines()) <= 160


def test_brackets_in_names_are_no_markup() -> None:
    rows = memory(cell("memory", "[red]x[/red]", "dense", 4), 10.0)
    assert "[red]x[/red]" in printed(frame_of(rows))

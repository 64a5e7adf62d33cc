"""Progress in a terminal and in a log."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from highway_bench.cell import Cell
from highway_bench.execution.progress import Finished, Lines, Opened, Started, duration, showing_progress
from highway_bench.results.schema import Status

CELL = Cell(task="memory", block="[red]", family="dense", depth=1, width=8, nominal_width=8)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3000, "50 min"), (5400, "1 h 30 min"), (7260, "2 h 1 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_lines() -> None:
    out, now = io.StringIO(), [0.0]
    lines = Lines(Console(file=out), clock=lambda: now[0])
    lines(Opened(cells=4, stored=1, other_sources=0, resumed=2, left=100.0))
    lines(Started((CELL,)))
    lines(Finished(CELL, Status.OK, None, 1.0, 2, 4, 50.0))  # too soon for another line
    now[0] = 11.0
    lines(Finished(CELL, Status.OOM, "out of memory", 1.0, 3, 4, 20.0))
    lines(Finished(CELL, Status.OK, None, 1.0, 4, 4, 0.0))
    assert out.getvalue().splitlines() == [
        "4 cells, 1 in the store already, 2 to resume from a checkpoint, about 2 min left",
        "oom: memory [red] dense depth 1 width 8: out of memory",
        "4/4 cells, about 0 s left",
    ]


def test_bar() -> None:
    out = io.StringIO()
    with showing_progress(Console(file=out, force_terminal=True, width=160)) as show:
        show(Opened(cells=2, stored=0, other_sources=0, resumed=1, left=100.0))
        show(Started((CELL,)))
        show(Finished(CELL, Status.FAILED, "why", 1.0, 1, 2, 50.0))
        show(Finished(CELL, Status.OK, None, 1.0, 2, 2, 0.0))
    assert "1 to resume from a checkpoint" in out.getvalue()
    assert "memory [red] dense depth 1 width 8: why" in out.getvalue()
    assert "2/2" in out.getvalue()

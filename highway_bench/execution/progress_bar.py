"""Progress bar: shows a run's progress as a bar in a terminal, and as occasional lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from highway_bench.cell import Cell
from highway_bench.execution.progress import Event, Finished, Opened, Started
from highway_bench.results.schema import FAILURES

EVERY = 10.0  # seconds between lines where there is no terminal
LONGEST = 60  # characters of a cell next to the bar


@contextmanager
def showing_progress(console: Console | None = None) -> Iterator[Callable[[Event], None]]:
    """Show the events of one run on ``console`` (by default stderr), while this context is open."""
    console = console or stderr_console()
    if not console.is_terminal:
        yield Lines(console)
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress)


def stderr_console() -> Console:
    """The console for progress. It is stderr, so that stdout has results only."""
    return Console(stderr=True)


class Bar:
    """Shows events as a bar. A failed cell is printed above it at once."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task: TaskID = progress.add_task("starting", total=None, left="")

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opened):
            if event.resumed:
                self.progress.console.print(plan(event), highlight=False)
            self.progress.update(self.task, total=event.cells, completed=event.stored, left=left(event.left))
        elif isinstance(event, Started):
            self.progress.update(self.task, description=shortened(event.cells[0]))
        else:
            if event.status in FAILURES:
                self.progress.console.print(failure(event), highlight=False)
            self.progress.update(self.task, total=event.cells, completed=event.done, left=left(event.left))


class Lines:
    """Prints events as lines: the plan, every failure, and the progress every few seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.clock = clock
        self.last = clock()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opened):
            self._print(plan(event))
        elif isinstance(event, Finished):
            if event.status in FAILURES:
                self._print(str(failure(event)))
            if event.done == event.cells or self.clock() - self.last >= EVERY:
                self._print(f"{event.done}/{counted(event.cells)}, {left(event.left)}")

    def _print(self, text: str) -> None:
        self.last = self.clock()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def failure(event: Finished) -> Text:
    """A failed cell in one line."""
    return Text.assemble((str(event.status), "bold red"), f": {event.cell}: {event.message}")


def plan(event: Opened) -> str:
    """The run's cells and estimated time, in one line."""
    resumed = f", {event.resumed} to resume from a checkpoint" if event.resumed else ""
    return f"{counted(event.cells)}, {event.stored} in the store already{resumed}, {left(event.left)}"


def shortened(cell: Cell) -> str:
    text = str(cell)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def counted(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def left(seconds: float) -> str:
    """The remaining time, as an estimate."""
    return f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds, minutes, or hours and minutes: 45 s, 12 min, 3 h 20 min.

    >>> duration(754)
    '13 min'
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"

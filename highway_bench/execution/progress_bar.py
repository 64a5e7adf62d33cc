"""Progress bar: shows a run's progress as a bar in a terminal, and as occasional lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from highway_bench.cell import Cell
from highway_bench.execution.log_file import LogFile
from highway_bench.execution.progress import Event, Finished, Opened, Started
from highway_bench.execution.progress_text import counted, planned, time_left
from highway_bench.results.schema import FAILURES
from highway_bench.terminal import printable

EVERY = 10.0  # seconds between lines where there is no terminal
WIDTH = 30  # of a bar of text
NOTES = 12  # lines above it
LONGEST = 60  # characters of a cell next to the bar


@contextmanager
def showing_progress(
    console: Console | None = None, log: Path | None = None, notes: Iterable[str] = ()
) -> Iterator[Callable[[Event], None]]:
    """Show ``notes`` and the events of one run, while this context is open, in a notebook or on ``console`` (by default
    stderr), and append the events to the file ``log``."""
    if console is None and in_notebook():
        yield NotebookOutput(notes)
        return
    console = console or stderr_console()
    for line in notes:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    with ExitStack() as opened:
        shown = _shown_on(console, opened)
        if log is None:
            yield shown
            return
        written = opened.enter_context(LogFile(log))

        def both(event: Event) -> None:
            written(event)
            shown(event)

        yield both


def _shown_on(console: Console, opened: ExitStack) -> Callable[[Event], None]:
    if not console.is_terminal:
        return Lines(console)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    return Bar(opened.enter_context(Progress(*columns, console=console, transient=True)))


def stderr_console() -> Console:
    """The console for progress. It is stderr, so that stdout has results only."""
    return Console(stderr=True)


def in_notebook() -> bool:
    """Whether a notebook shows what this process displays."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class NotebookOutput:
    """Shows notes and events in one output of a notebook, which changes in place."""

    def __init__(self, notes: Iterable[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self.notes, self.clock = list(notes), clock
        self.last = clock()
        display = import_module("IPython.display").display
        starting = {"text/plain": "\n".join([*self.notes, "starting"])}
        self.output: Any = display(starting, raw=True, display_id=True)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opened):
            self._show(planned(event))
        elif isinstance(event, Finished):
            if event.status in FAILURES:
                self.say(str(failure(event)))
            if event.done == event.cells or self.clock() - self.last >= 1:
                filled = WIDTH * event.done // event.cells
                bar = "█" * filled + "░" * (WIDTH - filled)
                self._show(f"{bar} {event.done}/{counted(event.cells)}, {time_left(event.left)}")

    def say(self, note: str) -> None:
        """Add a line above the progress; of many, the last are shown."""
        self.notes = [*self.notes, note][-NOTES:]
        self._show("")

    def _show(self, text: str) -> None:
        self.last = self.clock()
        self.output.update({"text/plain": "\n".join([*self.notes, text])}, raw=True)


class Bar:
    """Shows events as a bar. A failed cell is printed above it at once."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task: TaskID = progress.add_task("starting", total=None, left="")

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opened):
            if event.resumed:
                self.progress.console.print(planned(event), highlight=False)
            self.progress.update(self.task, total=event.cells, completed=event.stored, left=time_left(event.left))
        elif isinstance(event, Started):
            self.progress.update(self.task, description=shortened(event.cells[0]))
        else:
            if event.status in FAILURES:
                self.progress.console.print(failure(event), highlight=False)
            self.progress.update(self.task, total=event.cells, completed=event.done, left=time_left(event.left))


class Lines:
    """Prints events as lines: the plan, every failure, and the progress every few seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.clock = clock
        self.last = clock()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opened):
            self._print(planned(event))
        elif isinstance(event, Finished):
            if event.status in FAILURES:
                self._print(str(failure(event)))
            if event.done == event.cells or self.clock() - self.last >= EVERY:
                self._print(f"{event.done}/{counted(event.cells)}, {time_left(event.left)}")

    def _print(self, text: str) -> None:
        self.last = self.clock()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def failure(event: Finished) -> Text:
    """A failed cell in one line."""
    return Text.assemble((str(event.status), "bold red"), printable(f": {event.cell}: {event.message}"))


def shortened(cell: Cell) -> str:
    text = printable(str(cell))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

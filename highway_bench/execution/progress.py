"""Progress: the events of a run, its remaining time, and how both are shown in a terminal, a notebook and a log.

A terminal has a bar, a notebook one output that changes in place, any other stream a line every few seconds. A log has
a line for each event with its time, for a person who reads it afterwards or from elsewhere.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.results.schema import FAILURES, Status
from highway_bench.terminal import printable

if TYPE_CHECKING:
    from highway_bench.execution.schedule import ScheduledCell

WIDTH = 30  # of a bar of text
NOTES = 12  # lines above it
LONGEST = 60  # characters of a cell next to the bar


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The run starts: ``cells`` in all, ``stored`` of them measured before (``other_sources`` of these with another
    source), ``resumed`` from a checkpoint, ``left`` the estimated seconds."""

    cells: int
    stored: int
    other_sources: int
    resumed: int
    left: float


@dataclass(frozen=True)
class Started:
    """A worker started these cells."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Finished:
    """A cell ended and is stored; ``done`` of ``cells`` have ended, ``left`` seconds remain."""

    cell: Cell
    status: Status
    message: str | None
    seconds: float
    done: int
    cells: int
    left: float


Event = Opened | Started | Finished


class TimeLeft:
    """Remaining seconds of a run: the tasks' estimates, corrected by the times of the cells measured so far."""

    def __init__(self, items: Iterable[ScheduledCell], workers: int) -> None:
        self._lanes: dict[str, int] = {}
        self._left: defaultdict[str, float] = defaultdict(float)
        self._seen: defaultdict[str, float] = defaultdict(float)
        self._taken: defaultdict[str, float] = defaultdict(float)
        cells: Counter[str] = Counter()
        for item in items:
            shared = not item.task.alone and item.ran.device == "cpu"  # as engines do; a GPU counts as one lane
            self._lanes[item.task.name] = max(1, workers // item.ran.threads) if shared else 1
            self._left[item.task.name] += item.cost.seconds
            cells[item.task.name] += 1
        self._average = {name: self._left[name] / count for name, count in cells.items()}

    def ended(self, item: ScheduledCell, seconds: float | None) -> None:
        """``item`` ended after ``seconds``; ``None`` where it did not run."""
        name = item.task.name
        self._left[name] -= item.cost.seconds
        if seconds is not None:
            self._seen[name] += item.cost.seconds
            self._taken[name] += seconds

    @property
    def seconds(self) -> float:
        total = 0.0
        for name, left in self._left.items():
            # One average cell with its estimated time counts too: the first measured cell must not decide alone.
            prior = self._average[name]
            pace = (self._taken[name] + prior) / (self._seen[name] + prior) if prior > 0 else 1.0
            total += max(left, 0.0) * pace / self._lanes[name]
        return total


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
        written = opened.enter_context(log_file(log))

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
    """Prints events as lines: the plan, every failure, and the progress ``every`` so many seconds."""

    every = 10.0

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console, self.clock = console, clock
        self.last = clock()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opened):
            self.show(planned(event))
        elif isinstance(event, Finished):
            if event.status in FAILURES:
                self.say(str(failure(event)))
            if event.done == event.cells or self.clock() - self.last >= self.every:
                self.show(f"{self.bar(event)}{event.done}/{counted(event.cells)}, {time_left(event.left)}")

    def say(self, note: str) -> None:
        """Print a line that stays."""
        self.show(note)

    def show(self, text: str) -> None:
        """Print how far the run is."""
        self.last = self.clock()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def bar(self, event: Finished) -> str:
        """What a line of progress begins with."""
        return ""


class NotebookOutput(Lines):
    """Shows notes and events in one output of a notebook, which changes in place."""

    every = 1.0

    def __init__(self, notes: Iterable[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self.notes, self.clock = list(notes), clock
        self.last = clock()
        display = import_module("IPython.display").display
        starting = {"text/plain": "\n".join([*self.notes, "starting"])}
        self.output: Any = display(starting, raw=True, display_id=True)

    def say(self, note: str) -> None:
        """Add a line above the progress; of many, the last are shown."""
        self.notes = [*self.notes, note][-NOTES:]
        self.show("")

    def show(self, text: str) -> None:
        self.last = self.clock()
        self.output.update({"text/plain": "\n".join([*self.notes, text])}, raw=True)

    def bar(self, event: Finished) -> str:
        filled = WIDTH * event.done // event.cells
        return "█" * filled + "░" * (WIDTH - filled) + " "


@contextmanager
def log_file(path: Path) -> Iterator[Callable[[Event], None]]:
    """Appends the events of a run to the file ``path``, and how it ended. Raises ``BadInput`` if it cannot be opened.

    A line is on the disk before the next event. A full disk costs lines of the log, not the run.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        out = path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
    except (OSError, ValueError) as error:  # ValueError: a null character
        raise BadInput(f"cannot write the log {path}: {getattr(error, 'strerror', None) or error}") from error

    def write(text: str) -> None:
        with suppress(OSError):
            out.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}Z {printable(text)}\n")

    try:
        yield lambda event: write(logged(event))
    except BaseException as error:
        write(f"the run stopped: {type(error).__name__}: {error}")
        raise
    else:
        write("the run has ended")
    finally:
        with suppress(OSError):
            out.close()


def logged(event: Event) -> str:
    """An event as a line of the log."""
    if isinstance(event, Opened):
        return planned(event)
    if isinstance(event, Started):
        return f"began {len(event.cells)}: {event.cells[0]}"
    why = f": {event.message}" if event.message else ""
    return f"{event.done}/{event.cells} {event.status} in {duration(event.seconds)}: {event.cell}{why}"


def failure(event: Finished) -> Text:
    """A failed cell in one line."""
    return Text.assemble((str(event.status), "bold red"), printable(f": {event.cell}: {event.message}"))


def shortened(cell: Cell) -> str:
    text = printable(str(cell))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def planned(event: Opened) -> str:
    """The run's cells and estimated time, in one line."""
    others = f" ({event.other_sources} by other sources: --strict-source measures them again)"
    stored = f"{event.stored} in the store already{others if event.other_sources else ''}"
    resumed = f", {event.resumed} to resume from a checkpoint" if event.resumed else ""
    return f"{counted(event.cells)}, {stored}{resumed}, {time_left(event.left)}"


def counted(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def time_left(seconds: float) -> str:
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

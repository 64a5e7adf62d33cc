"""Log file: the events of a run, a line each with its time, for a person who reads it afterwards or from elsewhere."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from highway_bench.errors import BadInput
from highway_bench.execution.progress import Event, Finished, Opened
from highway_bench.execution.progress_text import duration, planned
from highway_bench.terminal import printable


class LogFile:
    """Appends the events of a run to the file ``path``; a context manager. Raises ``BadInput`` if it cannot be opened.

    A line is on the disk before the next event. A full disk costs lines of the log, not the run.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._out = path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
        except (OSError, ValueError) as error:  # ValueError: a null character
            raise BadInput(f"cannot write the log {path}: {getattr(error, 'strerror', None) or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write("the run has ended" if kind is None else f"the run stopped: {kind.__name__}: {error}")
        with suppress(OSError):
            self._out.close()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Opened):
            self.write(planned(event))
        elif isinstance(event, Finished):
            why = f": {event.message}" if event.message else ""
            took = duration(event.seconds)
            self.write(f"{event.done}/{event.cells} {event.status} in {took}: {event.cell}{why}")
        else:
            self.write(f"began {len(event.cells)}: {event.cells[0]}")

    def write(self, text: str) -> None:
        """Append one line."""
        with suppress(OSError):
            self._out.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}Z {printable(text)}\n")

"""Measured cells: what the store has of an advice's cells, round by round."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from highway_bench.cell import Cell
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event, Finished
from highway_bench.plan.plan import Plan
from highway_bench.report.format import counted
from highway_bench.results.store import Store

Scalars = Mapping[str, float | None]


class TimedSteps(NamedTuple):
    """The seconds of a cell's steps, and those of plain in the same rounds; sample i is of process ``process[i]``.

    ``wall`` are the wall times of the cell's steps.
    """

    seconds: list[float]
    wall: list[float]
    plain: list[float]
    process: list[int]


class MeasuredCells:
    """Measures cells that ``store`` lacks, and has the results of all that were requested.

    ``on_stage`` receives the name of what is measured next. ``failures`` are the reasons of cells without a result,
    ``seconds`` the times of those measured now.
    """

    def __init__(
        self,
        store: Store,
        *,
        plugins: Sequence[str] = (),
        engine: AnyEngine = "local",
        workers: int = 1,
        on_event: Callable[[Event], None] | None = None,
        on_stage: Callable[[str], None] = lambda what: None,
        command: Sequence[str] | None = None,
    ) -> None:
        self.store, self.plugins, self.engine, self.workers = store, tuple(plugins), engine, workers
        self.command, self.on_stage = command, on_stage
        self.failures: dict[Cell, str] = {}
        self.seconds: dict[Cell, float] = {}
        self._on_event = on_event or (lambda event: None)
        self._digests: dict[Cell, str] = {}
        self._values: dict[Cell, Scalars] = {}

    def __contains__(self, cell: object) -> bool:
        """Whether ``cell`` was requested, whatever its result."""
        return cell in self._digests

    def measure(self, cells: Iterable[Cell], what: str) -> None:
        """Measure ``cells``, each once; ``what`` names them to ``on_stage``."""
        self.on_stage(what)
        wanted = tuple(dict.fromkeys(cells))
        result = Plan(wanted, self.plugins).run(
            self.store, engine=self.engine, workers=self.workers, on_event=self._event, command=self.command
        )
        self._digests |= result.summary.digests
        self.failures |= {ending.cell: f"{ending.status}: {ending.message}" for ending in result.failures}
        for cell in wanted:
            self._values[cell] = self.store.scalars(self._digests[cell])

    def notes_on_failures(self) -> list[str]:
        """How many measurements failed, and the reason of the first; empty if none did."""
        reasons = list(self.failures.values())
        return [f"{counted(len(reasons), 'measurement')} failed, the first: {reasons[0]}."] if reasons else []

    def digest(self, cell: Cell) -> str:
        """The digest of a measured cell."""
        return self._digests[cell]

    def value(self, cell: Cell, metric: str) -> float | None:
        """A metric of a measured cell; ``None`` where it has none."""
        return self._values.get(cell, {}).get(metric)

    def steps(self, cell: Cell) -> TimedSteps | None:
        """The timed steps of a throughput cell; ``None`` where it has none."""
        rows = self.store.rows(digest=self._digests[cell], metric="step_time") if cell in self._digests else []
        texts = [(row["samples"], row["paired"]) for row in rows if row["samples"] and row["paired"]]
        if not texts:
            return None
        paired: dict[str, Any] = json.loads(texts[0][1])
        return TimedSteps(json.loads(texts[0][0]), paired["wall"], paired["plain"], paired["process"])

    def _event(self, event: Event) -> None:
        if isinstance(event, Finished):
            self.seconds[event.cell] = event.seconds
        self._on_event(event)

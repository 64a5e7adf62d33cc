"""Measured: what the store has of an advice's cells, round by round, and what was decided from their times."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event, Finished
from highway_bench.plan.plan import Plan
from highway_bench.results.store import Store


@dataclass
class MeasuredCells:
    """Measures cells that ``store`` lacks, and has the results of all that were requested.

    ``on_stage`` receives the name of what is measured next. ``failures`` are the reasons of cells without a result,
    ``seconds`` the times of those measured now.
    """

    store: Store
    plugins: Sequence[str]
    engine: AnyEngine
    workers: int
    on_event: Callable[[Event], None] | None
    on_stage: Callable[[str], None]
    command: Sequence[str] | None
    failures: dict[Cell, str] = field(default_factory=dict)
    seconds: dict[Cell, float] = field(default_factory=dict)
    _digests: dict[Cell, str] = field(default_factory=dict)
    _values: dict[Cell, Mapping[str, float | None]] = field(default_factory=dict)

    def __contains__(self, cell: object) -> bool:
        """Whether ``cell`` was requested, whatever its result."""
        return cell in self._digests

    def measure(self, cells: Iterable[Cell], what: str) -> None:
        """Measure ``cells``, each once; ``what`` names them to ``on_stage``."""
        self.on_stage(what)
        wanted = tuple(dict.fromkeys(cells))
        result = Plan(wanted, tuple(self.plugins)).run(
            self.store, engine=self.engine, workers=self.workers, on_event=self._event, command=self.command
        )
        self._digests |= result.summary.digests
        self.failures |= {ending.cell: f"{ending.status}: {ending.message}" for ending in result.failures}
        for cell in wanted:
            self._values[cell] = self.store.scalars(self._digests[cell])

    def value(self, cell: Cell, metric: str) -> float | None:
        """A metric of a measured cell; ``None`` where it has none."""
        return self._values.get(cell, {}).get(metric)

    def losses(self, cells: Iterable[Cell]) -> list[float | None]:
        """The final losses of trainings, in their order; ``None`` where one has none."""
        return [self.value(cell, "final_loss") for cell in cells]

    def values(self, cells: Iterable[Cell], metric: str) -> list[float]:
        """A metric of those of ``cells`` that have it."""
        return [value for cell in cells if (value := self.value(cell, metric)) is not None]

    def steps(self, cell: Cell) -> Mapping[str, Any]:
        """The timed steps of a throughput cell, empty where it has none: the seconds of its ``own`` and their ``wall``
        times, those of ``plain`` in the same rounds, and the ``process`` of each."""
        rows = self.store.rows(digest=self._digests[cell], metric="step_time") if cell in self._digests else []
        timed = [row for row in rows if row["samples"] and row["paired"]]
        return {"own": json.loads(timed[0]["samples"]), **json.loads(timed[0]["paired"])} if timed else {}

    def _event(self, event: Event) -> None:
        if isinstance(event, Finished):
            self.seconds[event.cell] = event.seconds
        if self.on_event is not None:
            self.on_event(event)


class Decisions:
    """The decisions in the JSON file ``path``, by name.

    Times differ from run to run, so that deciding again would give other cells, and another answer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except (OSError, ValueError) as error:
            raise BadInput(f"{path} cannot be read ({error}): remove its folder to begin again") from error

    def once(self, name: str, decide: Callable[[], Any]) -> Any:
        """The decision ``name``; the value of ``decide``, which JSON must know, where it was not decided before."""
        if name not in self._values:
            self._values[name] = decide()
            self._write()
        return self._values[name]

    def forget(self, *names: str) -> None:
        """Remove decisions; ``once`` then makes them again."""
        for name in names:
            self._values.pop(name, None)
        self._write()

    def _write(self) -> None:
        partly = self.path.with_suffix(".part")
        partly.write_text(json.dumps(self._values, indent=1, allow_nan=False), encoding="utf-8")
        os.replace(partly, self.path)

"""Rounds: cells of which the next follow from the results of those before, measured until there are none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event
from highway_bench.execution.schedule import FAILED, Schedule, is_named, with_needs
from highway_bench.plan.plan import AnyStore, Plan, RunResult, opened
from highway_bench.report.format import counted
from highway_bench.results.schema import COLUMNS
from highway_bench.studies.decide.candidate import Trainings, end_of

R = TypeVar("R")


def rounds(
    pending: Callable[[Mapping[Cell, R]], Iterable[Cell]], measure: Callable[[list[Cell]], Mapping[Cell, R]]
) -> dict[Cell, R | None]:
    """Measure the cells that are ``pending`` given the results so far, each once, until there is no new one.

    All cells in this order, each with its result; ``None`` for one that has none, from which nothing follows.
    """
    asked: dict[Cell, R | None] = {}
    results: dict[Cell, R] = {}
    while new := [cell for cell in dict.fromkeys(pending(results)) if cell not in asked]:
        results.update(measure(new))
        asked |= {cell: results.get(cell) for cell in new}
    return asked


@dataclass(frozen=True)
class Trainer:
    """Measures cells in rounds. What ``store`` has is not measured again, so what was interrupted goes on where it
    stopped, but for cells that ``rerun`` names; with ``strict_source``, rows of another source than today's are.

    ``on_round`` receives the number of each round and its cells, ``results`` has the results of all rounds.
    """

    store: AnyStore | None
    engine: AnyEngine = "local"
    workers: int | None = None
    on_event: Callable[[Event], None] | None = None
    on_round: Callable[[int, Sequence[Cell]], None] = lambda number, cells: None
    strict_source: bool = False
    rerun: str = FAILED
    plugins: tuple[str, ...] = ()
    command: Sequence[str] | None = None
    results: list[RunResult] = field(default_factory=list)

    def train(self, pending: Callable[[Trainings], Iterable[Cell]]) -> Trainings:
        """Train what is ``pending`` until nothing is, and return how each training ended."""
        ends = rounds(pending, self.in_rounds(lambda one: ended(one.rows, one.summary.digests)))
        return {cell: end for cell, end in ends.items() if end is not None}

    def in_rounds(
        self, results_of: Callable[[RunResult], Mapping[Cell, R]]
    ) -> Callable[[list[Cell]], Mapping[Cell, R]]:
        """The function that ``rounds`` measures with; ``results_of`` what was run are the results of its cells."""
        numbers = itertools.count(1)

        def measure(cells: list[Cell]) -> Mapping[Cell, R]:
            self.on_round(next(numbers), cells)
            return results_of(self.measure(cells))

        return measure

    def measure(self, cells: Iterable[Cell]) -> RunResult:
        """Measure those of ``cells`` that the store lacks."""
        plan = Plan(tuple(dict.fromkeys(cells)), self.plugins)
        named = any(is_named(self.rerun, cell) for cell in plan.needs)  # perhaps cells of another round
        result = plan.run(
            self.store,
            engine=self.engine,
            workers=self.workers,
            rerun=self.rerun if named else FAILED,
            strict_source=self.strict_source,
            on_event=self.on_event,
            command=self.command,
        )
        self.results.append(result)
        return result

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of all cells that were requested."""
        empty = pd.DataFrame(columns=list(COLUMNS))
        return pd.concat([one.rows for one in self.results], ignore_index=True) if self.results else empty

    @property
    def failures(self) -> str:
        """How many cells failed, and the reason of the first; empty if none did."""
        every = [ending for one in self.results for ending in one.failures]
        if not every:
            return ""
        return f"{counted(len(every), 'cell')} failed, the first: {every[0].cell}: {every[0].message}"


def stored_ends(path: Path, cells: Sequence[Cell]) -> Trainings:
    """How those of ``cells`` ended that the store at ``path`` has; it is not written to."""
    if not path.exists():
        return {}
    with opened(path, read_only=True) as store:
        schedule = Schedule(store)
        schedule.add(with_needs(cells))
        schedule.ready()
        digests = {cell: item.digest for cell in cells if (item := schedule.items[cell]).stored}
        return ended(store.frame(digest=sorted(digests.values())), digests) if digests else {}


def ended(rows: pd.DataFrame, digests: Mapping[Cell, str]) -> Trainings:
    """How the trainings of the cells of these ``digests`` ended."""
    metrics: dict[str, dict[str, float]] = {}
    scalars = rows[rows["axis"].eq("") & rows["value"].notna()]
    for digest, metric, value in scalars[["digest", "metric", "value"]].itertuples(index=False, name=None):
        metrics.setdefault(digest, {})[metric] = float(value)
    return {cell: end_of(metrics.get(digest, {})) for cell, digest in digests.items()}

"""The protocol: the parts by name, a trainer that trains the pending cells of a part until it has none, and its costs.

The costs are the step time and the bytes of every block of the parts that train, at the widths of their trainings. Each
block is measured at its starts, in all of its part's depths: a start may add a scale to a bare sum. The answer's table
reads the costs by family, depth and machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.errors import BadInput, UnknownName
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event
from highway_bench.execution.schedule import Schedule, with_needs
from highway_bench.plan.plan import Plan, RunResult, opened
from highway_bench.report.format import counted
from highway_bench.results.schema import COLUMNS
from highway_bench.studies.decide import evidence
from highway_bench.studies.decide.candidate import Candidate, TrainingEnd, Trainings
from highway_bench.studies.decide.language import equal_seconds, language, step_ratios, timing_cells
from highway_bench.studies.decide.part import Part, dense, vision
from highway_bench.tasks.from_cell import cell_family, positions_of

TIMING: Final[dict[str, Any]] = {"seconds": 0, "samples": 7, "processes": 3, "precision": 0.05, "limit": 3}
"""All blocks of these parts take about 40 minutes on two idle cores."""


def costs() -> CostPart:
    """Every candidate of these parts."""
    return CostPart("costs", (*dense().candidates, *vision().candidates, *language().candidates))


@dataclass(frozen=True)
class CostPart(Part):
    """Candidates that are not trained, but timed and counted at each of their depths."""

    def pending(self, trainings: Trainings) -> list[Cell]:
        """The cells that are not among ``trainings``. Those of one family and depth are timed in turn."""
        return [cell for one in self.candidates for cell in cost_cells(one) if cell not in trainings]

    def table(self) -> list[dict[str, Any]]:
        """The candidates as records; a cost has no training steps."""
        return [{name: row[name] for name in row if name != "steps"} for row in super().table()]


def cost_cells(candidate: Candidate) -> Iterator[Cell]:
    """By depth, the cells that time a step of a candidate and count its bytes, with the length of its data's
    sequences."""
    template, family = candidate.template, cell_family(candidate.template)
    steps = positions_of(family, template) if family.kind == "sequence" else None
    for depth in candidate.depths:
        step = template.but(depth=depth, seq_len=steps, phase="train-step", dataset=None)
        yield step.but(task="throughput", recipe=TIMING)
        yield step.but(task="memory", recipe={})


@dataclass(frozen=True)
class Trainer:
    """Trains parts. What ``store`` has is not measured again, so an interrupted part goes on where it stopped; with
    ``strict_source``, rows of another source than today's are.

    ``on_round`` receives the number of each round and its cells, ``results`` has the results of all rounds.
    """

    store: Path
    engine: AnyEngine = "local"
    workers: int | None = None
    on_event: Callable[[Event], None] | None = None
    on_round: Callable[[int, Sequence[Cell]], None] = lambda number, cells: None
    strict_source: bool = False
    results: list[RunResult] = field(default_factory=list)

    def train(self, part: Part) -> Trainings:
        """Train ``part`` to its end, and return how each training ended."""
        number = 0
        trainings: dict[Cell, TrainingEnd] = {}
        while cells := part.pending(trainings):
            number += 1
            self.on_round(number, cells)
            result = self.measure(cells)
            trainings |= ended(result.rows, result.summary.digests)
        return trainings

    def measure(self, cells: Sequence[Cell]) -> RunResult:
        """Measure those of ``cells`` that the store lacks."""
        plan = Plan(tuple(dict.fromkeys(cells)))
        result = plan.run(
            self.store,
            engine=self.engine,
            workers=self.workers,
            strict_source=self.strict_source,
            on_event=self.on_event,
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


def seconds(trainer: Trainer | None) -> Part:
    """The part of equal seconds, after the language part has ended and the steps of its blocks are timed."""
    if trainer is None:
        raise BadInput(
            "part 'seconds' has no candidates yet, they follow from the results of language: 'highway-bench decide "
            "--part seconds', without --dry-run, measures both; compare-my-block takes one of "
            f"{', '.join(OF_EVERY_BLOCK)}"
        )
    part = language()
    trainings = trainer.train(part)
    cells = timing_cells(part, trainings)
    return equal_seconds(part, trainings, step_ratios(trainer.measure(list(cells.values())), cells))


OF_EVERY_BLOCK = ("dense", "vision", "language")
"""The parts whose candidates are known before anything is trained, so that a block of your own can be added."""


PARTS: Mapping[str, Callable[[Trainer | None], Part]] = {
    "dense": lambda trainer: dense(),
    "vision": lambda trainer: vision(),
    "language": lambda trainer: language(),
    "seconds": seconds,
    "costs": lambda trainer: costs(),
    "equal-width": lambda trainer: evidence.equal_width(),
    "resnet": lambda trainer: evidence.resnet(),
    "long": lambda trainer: evidence.long(),
    "code": lambda trainer: evidence.code(),
    "new": lambda trainer: evidence.new(),
    "deep": lambda trainer: evidence.deep(),
    "mnist": lambda trainer: evidence.mnist(),
    "wide": lambda trainer: evidence.wide(),
}


def get_part(name: str, trainer: Trainer | None = None) -> Part:
    """The part called ``name``; raises ``UnknownName`` with near names.

    The candidates of ``seconds`` follow from the results of ``language``, which ``trainer`` trains first. Without a
    trainer, this part raises ``BadInput``.
    """
    if name not in PARTS:
        raise UnknownName("part", name, PARTS)
    return PARTS[name](trainer)


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


def ended(rows: pd.DataFrame, digests: Mapping[Cell, str]) -> dict[Cell, TrainingEnd]:
    """How the trainings of the cells of these ``digests`` ended."""
    scalars = rows[rows["axis"] == ""]
    values = {
        (digest, metric): value
        for digest, metric, value in scalars[["digest", "metric", "value"]].itertuples(index=False, name=None)
    }
    found = {}
    for cell, digest in digests.items():
        loss, success, target = (values.get((digest, metric)) for metric in ("final_loss", "success", "success_loss"))
        known = None if loss is None or loss != loss else float(loss)
        found[cell] = TrainingEnd(known, success == 1, math.nan if target is None else float(target))
    return found

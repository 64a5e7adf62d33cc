"""Costs: the step time and the bytes of every block of the parts that train, at the widths of their trainings.

Neither depends on a block's start, so each block is measured once a depth, in all of its part's depths. The answer's
table reads them by family, depth and machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from highway_bench.cell import Cell
from highway_bench.decide.candidate import Candidate, Trainings
from highway_bench.decide.dense import dense
from highway_bench.decide.language import language
from highway_bench.decide.part import Part
from highway_bench.decide.vision import vision
from highway_bench.tasks.from_cell import cell_family, positions_of

TIMING: Final[dict[str, Any]] = {"seconds": 0, "samples": 7, "processes": 3, "precision": 0.05, "limit": 3}
"""All blocks of these parts take about 20 minutes on two idle cores."""


def costs() -> CostPart:
    """Every block of these parts, once in each family."""
    every = [*dense().candidates, *vision().candidates, *language().candidates]
    once = {(one.template.family, str(one.template.family_options), one.template.block): one for one in reversed(every)}
    return CostPart("costs", tuple(reversed(once.values())))


@dataclass(frozen=True)
class CostPart(Part):
    """Candidates that are not trained, but timed and counted at each of their depths."""

    def pending(self, trainings: Trainings) -> list[Cell]:
        """The cells that are not among ``trainings``. Those of one family and depth are timed in turn."""
        return [cell for one in self.candidates for cell in cost_cells(one) if cell not in trainings]

    def table(self) -> list[dict[str, Any]]:
        """The candidates as records; a cost has no start and no training steps."""
        return [{name: row[name] for name in row if name not in ("start", "steps")} for row in super().table()]


def cost_cells(candidate: Candidate) -> Iterator[Cell]:
    """By depth, the cells that time a step of a candidate and count its bytes, with the length of its data's
    sequences."""
    template, family = candidate.template, cell_family(candidate.template)
    steps = positions_of(family, template) if family.kind == "sequence" else None
    for depth in candidate.depths:
        step = template.but(start=None, depth=depth, seq_len=steps, phase="train-step", dataset=None)
        yield step.but(task="throughput", recipe=TIMING)
        yield step.but(task="memory", recipe={})

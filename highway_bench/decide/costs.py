"""Costs: the step time and the bytes of every block of the parts that train, at the widths of their trainings.

Each block is measured at its starts, in all of its part's depths: a start may add a scale to a bare sum. The answer's
table reads the costs by family, depth and machine.
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

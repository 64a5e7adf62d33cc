"""Protocol: the candidates that are compared with each other, and the cells to train next; the parts dense and vision.

The dense part has fully connected layers on digits of 28 × 28 pixels, trained by SGD with momentum as in the papers.
The vision part has digits of 14 × 14 pixels, as images or as rows, in four families.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Self

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.plan.settings import BILSTM, CONV, CONV_PAIR, DENSE, TRANSFORMER
from highway_bench.studies.decide.candidate import LONGER, Candidate, Trainings, end_of, starts_of, usual_metrics
from highway_bench.studies.decide.rounds import rounds

DENSE_BLOCKS = ("plain", "highway", "highway-free", "residual", "pre-norm", "post-norm", "rezero", "deepnorm")
DENSE_DEPTHS = (10, 20, 50, 100, 200, 500)
VISION_BLOCKS = ("plain", "highway", "residual", "pre-norm", "post-norm", "rezero", "deepnorm")
VISION_DEPTHS = (
    (CONV, (5, 10, 20, 40)),
    (CONV_PAIR, (5, 10, 20, 40)),
    (BILSTM, (5, 10, 20, 40)),
    (TRANSFORMER, (5, 10, 20)),
)


@dataclass(frozen=True)
class Protocol:
    """A part of the protocol: candidates that are all trained at one depth before the next, so that an interrupted part
    compares all of them at the depths that it has."""

    name: str
    candidates: tuple[Candidate, ...]

    def pending(self, trainings: Trainings) -> list[Cell]:
        """The cells to train next, given how those before them ended; none where the part is done."""
        return self.next_depth(trainings)[1]

    def next_depth(self, trainings: Trainings) -> tuple[int, list[Cell]]:
        """The shallowest depth that is not done, and its cells to train next; 0 and none where the part is done."""
        for depth in sorted({depth for one in self.candidates for depth in one.depths}):
            upto = [replace(one, depths=[rung for rung in one.depths if rung <= depth]) for one in self.candidates]
            if cells := [cell for one in upto for cell in one.pending(trainings)]:
                return depth, cells
        return 0, []

    def only(self, families: Collection[str]) -> Self:
        """The part without other families; raises ``BadInput`` where none of its candidates is left."""
        candidates = tuple(one for one in self.candidates if one.template.family in families)
        if not candidates:
            raise BadInput(f"part {self.name!r} has no family {', '.join(families)}")
        return replace(self, candidates=candidates)

    def better_starts(self, trainings: Trainings) -> list[Candidate]:
        """Of each block, the start of the lowest loss with one seed at the first depth; the first one among equals."""
        by_block = groupby(self.candidates, key=lambda one: one.template.block)
        return [min(starts, key=lambda one: one.lowest(one.depths[0], trainings)) for _, starts in by_block]

    def usual_cells(self, stored: Callable[[Sequence[Cell]], Trainings] = lambda cells: {}) -> list[Cell]:
        """The cells of the part if all that are not ``stored`` train, and end best at the middle of the first rates."""
        middles = {one.template.family: one.first[len(one.first) // 2] for one in self.candidates}

        def ends(cells: Sequence[Cell]) -> Trainings:
            known = stored(cells)
            return {cell: known.get(cell) or end_of(usual_metrics(cell, middles[cell.family])) for cell in cells}

        return list(rounds(self.pending, ends))

    def table(self) -> list[dict[str, Any]]:
        """The candidates as records."""
        return [
            {
                "family": candidate.template.family,
                "block": candidate.template.block,
                "start": str(candidate.template.start),
                "width": candidate.template.width,
                "depths": list(candidate.depths),
                "steps": candidate.template.recipe["steps"],
            }
            for candidate in self.candidates
        ]


def dense() -> Protocol:
    """Every block of this part at each of its starts."""
    every = (starts_of(DENSE.cell(block), DENSE_DEPTHS, DENSE.first, longer=LONGER) for block in DENSE_BLOCKS)
    return Protocol("dense", tuple(one for starts in every for one in starts))


def vision() -> Protocol:
    """Every block of this part at each of its starts, in each family."""
    every = (
        starts_of(setting.cell(block), depths, setting.first, longer=LONGER)
        for setting, depths in VISION_DEPTHS
        for block in VISION_BLOCKS
    )
    return Protocol("vision", tuple(one for starts in every for one in starts))

"""Ranked parts: each block at its better start, more seeds for the best, and whole schedules of the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from statistics import fmean

from highway_bench.cell import Cell
from highway_bench.decide.candidate import REFERENCE, TUNING_SEEDS, Candidate, Trainings
from highway_bench.decide.part import Part
from highway_bench.success.rates import size

SCHEDULES = (0.25, 0.5, 1, 2, 4)
"""Times the steps of the reference's whole schedules."""
TUNED_SCHEDULES = (0.25, 4)
"""Those with learning rates of their own; the others have that of the part."""


@dataclass(frozen=True)
class RankedPart(Part):
    """At the first depth every start of a block is tried with one seed a rate; the start of the lowest loss goes on.

    At each depth, the ``leaders`` blocks of the lowest losses get ``leader_seeds`` seeds. The reference's schedules of
    ``rungs`` times ``rung_steps`` train at ``rung_depth`` with ``rung_seeds`` seeds.
    """

    leaders: int = 0
    leader_seeds: int = 0
    rungs: Sequence[float] = ()
    rung_steps: int = 0
    rung_depth: int = 0
    rung_seeds: int = 3

    def pending(self, trainings: Trainings) -> list[Cell]:
        tries = (one.tries(one.depths[0], one.first, trainings, TUNING_SEEDS[:1]) for one in self.candidates)
        if first := list(chain.from_iterable(tries)):
            return first
        better = Part(self.name, tuple(self.better_starts(trainings)))
        if cells := better.pending(trainings):
            return cells
        stages = (self.more_seeds(better.candidates, trainings), self.schedules(better.candidates, trainings))
        return next((cells for cells in map(list, stages) if cells), [])

    def better_starts(self, trainings: Trainings) -> Iterator[Candidate]:
        """Of each block, the start of the lowest loss with one seed at the first depth; the first one among equals."""
        for _, starts in groupby(self.candidates, key=lambda one: one.template.block):
            yield min(starts, key=lambda one: one.lowest(one.depths[0], trainings))

    def more_seeds(self, candidates: Sequence[Candidate], trainings: Trainings) -> Iterator[Cell]:
        """The further seeds of the leaders at each depth that they reach."""
        for depth in sorted({depth for one in candidates for depth in one.depths}) if self.leaders else ():
            here = [one for one in candidates if depth in (rung for rung, _ in one.rungs(trainings))]
            ranked = sorted(here, key=lambda one: mean_size(one.counted(depth, trainings), trainings))
            for one in ranked[: self.leaders]:
                seeded = replace(one, fresh=range(self.leader_seeds))
                yield from (cell for cell in seeded.finals(depth, trainings) if cell not in trainings)

    def schedules(self, candidates: Sequence[Candidate], trainings: Trainings) -> Iterator[Cell]:
        """The runs of the reference's schedules, which give no verdict."""
        reference = next(one for one in candidates if one.template.block == REFERENCE)
        for rung in self.rungs:
            one = replace(scheduled(reference, round(rung * self.rung_steps)), fresh=range(self.rung_seeds), more=())
            one = replace(one, depths=(self.rung_depth,), longer=1)
            if rung in TUNED_SCHEDULES:
                yield from one.pending(trainings)
            else:
                rate = reference.rate(self.rung_depth, trainings)
                runs = (one.run(self.rung_depth, rate, seed) for seed in one.fresh)
                yield from (cell for cell in runs if cell not in trainings)


def scheduled(candidate: Candidate, steps: int) -> Candidate:
    """The candidate with the same schedule over other ``steps``; where they differ, its runs give no verdict."""
    recipe = candidate.template.recipe
    if steps == recipe["steps"]:
        return candidate
    words = {"steps": steps, "verdict": False}
    words |= {"warm_up": round(recipe["warm_up"] * steps / recipe["steps"])} if "warm_up" in recipe else {}
    return replace(candidate, template=candidate.template.but(recipe={**recipe, **words}))


def mean_size(cells: Sequence[Cell], trainings: Trainings) -> float:
    """The mean logarithm of the losses of ``cells``."""
    return fmean(size(trainings[cell].loss) for cell in cells)

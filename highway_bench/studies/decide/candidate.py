"""Candidate: one connection at one start in one family, from its first depth to its last, and the rates it tries.

Three rates are tried with one seed. While the best of them is the lowest or the highest, its neighbour is tried too.
The best two get more seeds, and the best on average is chosen. Where that is the lowest or the highest, its neighbour
gets all seeds too, and so on: the chosen rate ends inside of the tried ones, or at the end of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Any, Final, NamedTuple

from highway_bench.cell import Cell
from highway_bench.plan.expand import matched
from highway_bench.plan.settings import FRESH_SEEDS, MORE_SEEDS
from highway_bench.success.ladder import TRAINS, verdict
from highway_bench.success.rates import GRID, Fresh, LossByRun, chosen_rate, counting, next_lower, size, wants_lower
from highway_bench.tasks.from_cell import cell_family, cell_spec

REFERENCE: Final = "pre-norm"
"""The block that the others are compared with."""
TUNING_SEEDS = (1_000, 1_001, 1_002)  # not those of the finals
LONGER = 3  # times the steps, where the loss ends near the threshold
NEAR = 2.0  # times the loss to reach


class Try(NamedTuple):
    """A run to make: its learning rate and its seed."""

    rate: float
    seed: int


def around(rate: float) -> tuple[float, ...]:
    """``rate`` and its neighbours on the grid."""
    index = GRID.index(rate)
    return GRID[max(0, index - 1) : index + 2]


def next_tries(losses: LossByRun, first: Sequence[float], seeds: Sequence[int]) -> list[Try]:
    """The runs to make next, or none where a rate can be chosen.

    ``first`` are the rates to begin with. Of ``seeds``, every tried rate has the first one; the best two, and those
    beyond a choice at the edge, have all.
    """
    tried = sorted({rate for rate, _ in losses} | set(first), key=GRID.index)
    if missing := [Try(rate, seeds[0]) for rate in tried if (rate, seeds[0]) not in losses]:
        return missing
    ranked = sorted(tried, key=lambda rate: (size(losses[rate, seeds[0]]), rate))
    if (wider := beyond(ranked[0], tried)) is not None:
        return [Try(wider, seeds[0])]
    if missing := [Try(rate, seed) for rate in ranked[:2] for seed in seeds[1:] if (rate, seed) not in losses]:
        return missing
    wider = beyond(chosen_rate(losses, seeds), tried)
    return [] if wider is None else [Try(wider, seed) for seed in seeds]


def beyond(best: float, tried: Sequence[float]) -> float | None:
    """The next rate of the grid where ``best`` is at an end of the ``tried`` ones; ``None`` where it is inside, or at
    the end of the grid."""
    index = GRID.index(best)
    if best == tried[0] and index > 0:
        return GRID[index - 1]
    if best == tried[-1] and index + 1 < len(GRID):
        return GRID[index + 1]
    return None


class TrainingEnd(NamedTuple):
    """How a training ended: its final loss, ``None`` where it diverged or failed, whether it succeeded, and the loss
    that it had to reach, where that is known."""

    loss: float | None
    success: bool
    target: float = math.nan


Trainings = Mapping[Cell, TrainingEnd]


def end_of(metrics: Mapping[str, float]) -> TrainingEnd:
    """How a training with these scalar metrics ended; one without a final loss, or with NaN, diverged or failed."""
    loss = metrics.get("final_loss", math.nan)
    target = metrics.get("success_loss", math.nan)
    return TrainingEnd(None if math.isnan(loss) else loss, metrics.get("success") == 1, target)


def usual_metrics(cell: Cell, middle: float) -> dict[str, float]:
    """What a training usually gives: it succeeds, with the lowest loss at the rate in the ``middle`` of the first."""
    rate = cell.recipe.get("rate", middle)
    return {"final_loss": max(rate / middle, middle / rate), "success": 1.0}


@dataclass(frozen=True)
class Candidate:
    """``template`` is the cell of every run but for depth, learning rate and seed; ``first`` are the learning rates
    to begin with at the first of ``depths``. At each further depth they are the last depth's choice and its neighbours.
    ``fresh`` are the seeds that count, and ``more`` those that are added where some of these trained and others did
    not. ``longer`` is how many times as many steps are trained where the loss ends near the threshold (see
    ``longer_runs``); with 1, none are. ``tuning`` are the seeds that choose a rate.
    """

    template: Cell
    depths: Sequence[int]
    first: Sequence[float]
    fresh: Sequence[int] = range(FRESH_SEEDS)
    more: Sequence[int] = range(FRESH_SEEDS, FRESH_SEEDS + MORE_SEEDS)
    longer: int = 1
    tuning: Sequence[int] = TUNING_SEEDS

    def run(self, depth: int, rate: float, seed: int) -> Cell:
        """The cell of one training; those that tune are trials."""
        return _run(self.template, depth, rate, seed)

    def pending(self, trainings: Trainings) -> list[Cell]:
        """The cells to train next, or none where the candidate is done."""
        for depth, first in self.rungs(trainings):
            if tries := self.tries(depth, first, trainings):
                return tries
            if missing := [cell for cell in self.finals(depth, trainings) if cell not in trainings]:
                return missing
            if missing := [cell for cell in self.longer_runs(depth, trainings) if cell not in trainings]:
                return missing
        return []

    def tries(
        self, depth: int, first: Sequence[float], trainings: Trainings, seeds: Sequence[int] | None = None
    ) -> list[Cell]:
        """The tuning runs to make next at a depth, or none where its learning rate can be chosen."""
        seeds = self.tuning if seeds is None else seeds
        return [self.run(depth, *one) for one in next_tries(self.losses(depth, trainings), first, seeds)]

    def rungs(self, trainings: Trainings) -> Iterator[tuple[int, Sequence[float]]]:
        """The depths in order, each with the learning rates that it begins with, as long as the last one trained at a
        seed."""
        first = self.first
        for depth in self.depths:
            yield depth, first
            if not any(trainings[cell].success for cell in self.finals(depth, trainings)):
                return
            first = around(self.rate(depth, trainings))

    def losses(self, depth: int, trainings: Trainings) -> dict[tuple[float, int], float | None]:
        """The final losses of the tuning runs at a depth, by rate and seed."""
        runs = {(rate, seed): self.run(depth, rate, seed) for rate in GRID for seed in TUNING_SEEDS}
        return {which: trainings[cell].loss for which, cell in runs.items() if cell in trainings}

    def lowest(self, depth: int, trainings: Trainings) -> float:
        """The logarithm of the lowest loss at a depth with the first tuning seed, at any rate."""
        losses = self.losses(depth, trainings)
        return min(size(loss) for (_, seed), loss in losses.items() if seed == TUNING_SEEDS[0])

    def rate(self, depth: int, trainings: Trainings) -> float:
        """The chosen learning rate at a depth whose tuning is done."""
        return chosen_rate(self.losses(depth, trainings), self.tuning)

    def finals(self, depth: int, trainings: Trainings, rate: float | None = None) -> list[Cell]:
        """The cells with fresh seeds at a depth: at ``rate``, by default the chosen one, and where that is not stable
        at the next lower one too."""
        rate = self.rate(depth, trainings) if rate is None else rate
        cells, lower = self._fresh(depth, rate, trainings), next_lower(rate)
        if lower is None or not all(cell in trainings for cell in cells):
            return cells
        tuning = [self.run(depth, lower, seed) for seed in TUNING_SEEDS]
        tuned = [trainings[cell].success for cell in tuning if cell in trainings]
        return cells + self._fresh(depth, lower, trainings) * wants_lower(_ends(cells, trainings), tuned)

    def counted(self, depth: int, trainings: Trainings, rate: float | None = None) -> list[Cell]:
        """Those of the ``finals`` that count, by rule ``success.rates.counting``, once all of them have ended."""
        by_rate: dict[float, list[Cell]] = {}
        for cell in self.finals(depth, trainings, rate):
            by_rate.setdefault(cell.recipe["rate"], []).append(cell)
        if len(by_rate) == 1 or not all(cell in trainings for cells in by_rate.values() for cell in cells):
            return next(iter(by_rate.values()))
        return by_rate[counting({rate: _ends(cells, trainings) for rate, cells in by_rate.items()})]

    def longer_runs(self, depth: int, trainings: Trainings) -> list[Cell]:
        """The cells that train ``longer`` times as many steps, at the rate that counts: where too few seeds succeed,
        none diverged, and the geometric mean of their losses is at most ``NEAR`` times the loss to reach."""
        cells = self.counted(depth, trainings)
        ends = [trainings[cell] for cell in cells if cell in trainings]
        known = [end.loss for end in ends if end.loss is not None]
        if (
            self.longer == 1
            or len(known) < len(cells)
            or verdict(sum(end.success for end in ends), len(ends)) == TRAINS
        ):
            return []
        if not fmean(map(size, known)) <= math.log(NEAR * ends[0].target):
            return []
        steps = {"steps": self.longer * self.template.recipe["steps"], "verdict": False}
        longer = replace(self, template=self.template.but(recipe={**self.template.recipe, **steps}))
        return [longer.run(depth, cells[0].recipe["rate"], seed) for seed in self.fresh]

    def _fresh(self, depth: int, rate: float, trainings: Trainings) -> list[Cell]:
        """The cells with fresh seeds at one rate, with more of them where some trained and others did not."""
        cells = [self.run(depth, rate, seed) for seed in self.fresh]
        trained = [trainings[cell].success for cell in cells if cell in trainings]
        if len(trained) == len(cells) and any(trained) and not all(trained):
            cells += [self.run(depth, rate, seed) for seed in self.more]
        return cells


def _ends(cells: Sequence[Cell], trainings: Trainings) -> Fresh:
    ends = [trainings[cell] for cell in cells]
    return Fresh(sum(end.success for end in ends), sum(end.loss is None for end in ends), len(ends))


@lru_cache(maxsize=100_000)  # every round asks for the same cells again
def _run(template: Cell, depth: int, rate: float, seed: int) -> Cell:
    trial = TUNING_SEEDS.index(seed) if seed in TUNING_SEEDS else None
    return template.but(depth=depth, seed=seed, trial=trial, recipe={**template.recipe, "rate": rate, "own_rate": True})


def starts_of(template: Cell, depths: Sequence[int], first: Sequence[float], **words: Any) -> list[Candidate]:
    """The candidates of the template's block: one for each of its starts that the family has, at the matched width.
    ``words`` are further fields of ``Candidate``."""
    cell, inits = matched(template), cell_family(template).inits
    starts = [start.name for start in cell_spec(template).starts if start.init in inits]
    return [Candidate(cell.but(start=start), depths, first, **words) for start in starts]

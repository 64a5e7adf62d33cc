"""Synchronous halving: rungs of n, 3n, 9n steps; of the connections of a rung, the best third goes on, or more.

Each rung has its own runs with a whole schedule of learning rates: a cosine that is cut short is no result. In the
first rung a connection tries three rates, and the neighbour of its best where that is the lowest or the highest. In the
others it tries the best two of the rung before; where time allows, with two seeds in the last rung, whose best rate is
that of the finals. All connections have the same seeds, so they see the same batches. A rung is judged when all of its
runs have ended, so the order in which they end does not matter. Pre-norm, at its better start, always goes on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

from highway_bench.cell import Cell
from highway_bench.studies.advice.budget import FINALISTS, LATER_TRIES, HalvingPlan, in_rung
from highway_bench.studies.advice.measured import MeasuredCells
from highway_bench.studies.advice.request import AdviceRequest, Connection
from highway_bench.studies.decide.candidate import REFERENCE, beyond


class RateLoss(NamedTuple):
    """The mean final loss over seeds, infinite where a run has none, and the learning rate that it was trained with."""

    loss: float
    rate: float


@dataclass(frozen=True)
class Halving:
    """The halving of ``connections``, by ``plan``; ``measured`` has the runs that have ended."""

    request: AdviceRequest
    connections: Sequence[Connection]
    plan: HalvingPlan
    measured: MeasuredCells
    _members: dict[int, list[Connection]] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The number of the last rung."""
        return self.plan.rungs - 1

    def pending(self) -> list[Cell]:
        """The cells to measure next, or none when the last rung has ended."""
        for rung in range(self.plan.rungs):
            members = self.members(rung)
            for rates in (self.first_rates, self.rates):
                cells = [cell for one in members for rate in rates(rung, one) for cell in self.cells(rung, one, rate)]
                if missing := [cell for cell in cells if cell not in self.measured]:
                    return missing
        return []

    def cells(self, rung: int, connection: Connection, rate: float) -> list[Cell]:
        """The cells of a connection at a rate in a rung, one a seed."""
        seeds = self.request.tuning_seeds(self.plan.seeds if rung == self.last else 1)
        return [self.request.run(connection, self.plan.ladder[rung], rate, seed) for seed in seeds]

    def members(self, rung: int) -> list[Connection]:
        """The connections that train in a rung; the rung before must have ended."""
        if rung not in self._members:
            self._members[rung] = list(self.connections) if rung == 0 else self._promoted(rung)
        return self._members[rung]

    def ranked(self, rung: int) -> list[Connection]:
        """The members of a rung that has ended, by their lowest loss."""
        return sorted(self.members(rung), key=lambda one: self.best(rung, one).loss)

    def finalists(self) -> list[Connection]:
        """Pre-norm first, and then at most three others, by their loss in the last rung. None of these diverged."""
        ranked = self.ranked(self.last)
        reference = first_reference(ranked)
        trained = [one for one in ranked if one != reference and math.isfinite(self.best(self.last, one).loss)]
        return [reference, *trained[: FINALISTS - 1]]

    def first_rates(self, rung: int, connection: Connection) -> Sequence[float]:
        """The rates that a connection begins a rung with: the first ones, or the best two of the rung before."""
        if rung == 0:
            return self.request.first_rates
        return [one.rate for one in self.by_loss(rung - 1, connection)[:LATER_TRIES]]

    def rates(self, rung: int, connection: Connection) -> Sequence[float]:
        """All rates of a connection in a rung whose first rates have ended."""
        first = self.first_rates(rung, connection)
        if rung > 0:
            return first
        wider = beyond(self._by_loss(rung, connection, first)[0].rate, first)
        return first if wider is None else [*first, wider]

    def by_loss(self, rung: int, connection: Connection) -> list[RateLoss]:
        """The rates of a connection in a rung with their final losses, the lowest first."""
        return self._by_loss(rung, connection, self.rates(rung, connection))

    def best(self, rung: int, connection: Connection) -> RateLoss:
        """The rate of lowest final loss, and that loss."""
        return self.by_loss(rung, connection)[0]

    def other(self, connection: Connection) -> RateLoss | None:
        """The next best rate of the last rung with its loss; ``None`` if it has none."""
        others = self.by_loss(self.last, connection)[1:]
        return others[0] if others and math.isfinite(others[0].loss) else None

    def longest_runs(self, connection: Connection) -> list[Cell]:
        """The cells of ``connection`` at its best rate in the last rung that it trained in."""
        rung = max(rung for rung in range(self.plan.rungs) if connection in self.members(rung))
        return self.cells(rung, connection, self.best(rung, connection).rate)

    def _promoted(self, rung: int) -> list[Connection]:
        ranked = self.ranked(rung - 1)
        chosen = ranked[: in_rung(rung, len(self.connections), self.plan.kept)]
        return chosen if any(one.block == REFERENCE for one in chosen) else [*chosen, first_reference(ranked)]

    def _by_loss(self, rung: int, connection: Connection, rates: Sequence[float]) -> list[RateLoss]:
        losses = {rate: self.measured.losses(self.cells(rung, connection, rate)) for rate in rates}
        return sorted(RateLoss(fmean(map(size_of, values)), rate) for rate, values in losses.items())


def size_of(loss: float | None) -> float:
    """A loss for ranks: a run without one comes last."""
    return loss if loss is not None and math.isfinite(loss) else math.inf


def first_reference(ranked: Sequence[Connection]) -> Connection:
    """Pre-norm at the start that ranks first."""
    return next(one for one in ranked if one.block == REFERENCE)

"""Reproductions whose arms train at learning rates of their own, chosen by the rule of ``decide.rates``."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.decide.candidate import Candidate, TrainingEnd, Trainings
from highway_bench.reproduce._measured import Metrics, metrics_by_key
from highway_bench.reproduce._paired import ArmRuns, arm
from highway_bench.reproduce.base import Reproduction
from highway_bench.reproduce.request import Request

Name = TypeVar("Name", bound=Hashable)


class TunedRuns(NamedTuple):
    """The runs of an arm that count, and the learning rates that were tried before."""

    runs: ArmRuns
    tried: Sequence[float]


class TunedReproduction(Reproduction, Generic[Name]):
    """A reproduction of ``arms``, which all get their learning rates by the same rule, on seeds that do not count."""

    @abstractmethod
    def arms(self, request: Request) -> Mapping[Name, Candidate]:
        """Every arm by its name, at a single depth."""

    def others(self, request: Request) -> list[Cell]:
        """The cells of no arm; by default none."""
        return []

    def cells(self, request: Request) -> list[Cell]:
        return [*self.follow_ups(request, {}), *self.others(request)]

    def follow_ups(self, request: Request, values: Mapping[Cell, Metrics]) -> list[Cell]:
        trainings = trainings_of(values)
        return [cell for arm in self.arms(request).values() for cell in arm.pending(trainings)]

    def tuned_runs(self, rows: pd.DataFrame, request: Request) -> dict[Name, TunedRuns]:
        """The runs of every arm in prepared ``rows``."""
        metrics = metrics_by_key(rows)
        values = {cell: metrics[cell.key] for cell in self.known_cells(request, metrics) if cell.key in metrics}
        trainings = trainings_of(values)
        return {name: runs_of(one, values, trainings) for name, one in self.arms(request).items()}

    def usual_cells(self, request: Request) -> list[Cell]:
        """Those of arms of which the middle of the first rates is the best, and every run trains."""
        trainings: dict[Cell, TrainingEnd] = {}
        arms = self.arms(request).values()
        while new := [(cell, arm.first) for arm in arms for cell in arm.pending(trainings)]:
            for cell, first in new:
                distance = abs(math.log(cell.recipe["rate"] / first[len(first) // 2]))
                trainings[cell] = TrainingEnd(math.exp(distance), success=True)
        return [*trainings, *self.others(request)]


def trainings_of(values: Mapping[Cell, Metrics]) -> Trainings:
    """How the trainings among ``values`` ended; the loss of one that diverged is NaN there and ``None`` here."""
    losses = {cell: metrics["final_loss"] for cell, metrics in values.items() if "final_loss" in metrics}
    return {
        cell: TrainingEnd(None if math.isnan(loss) else loss, values[cell].get("success") == 1)
        for cell, loss in losses.items()
    }


def runs_of(one: Candidate, values: Mapping[Cell, Metrics], trainings: Trainings) -> TunedRuns:
    """The runs of an arm with a single depth; none before its learning rate is chosen."""
    (depth,) = one.depths
    tried = sorted({rate for rate, _ in one.losses(depth, trainings)})
    finals = [] if one.tries(depth, one.first, trainings) else one.finals(depth, trainings)
    return TunedRuns(arm(values, [cell for cell in finals if cell in values]), tried)

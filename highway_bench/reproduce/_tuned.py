"""Reproductions whose arms train at learning rates of their own, chosen by the rule of ``decide.candidate``."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.decide.candidate import TUNING_SEEDS, Candidate, TrainingEnd, Trainings
from highway_bench.frames.rows import rows_of
from highway_bench.frames.trainability import edge
from highway_bench.reproduce._measured import Metrics, measured
from highway_bench.reproduce._paired import ArmRuns, arm
from highway_bench.reproduce.base import Reproduction
from highway_bench.reproduce.request import Request

RATE_HINT = f"chosen by the losses on other seeds; the best two rates have {len(TUNING_SEEDS)} runs each"


class TunedRuns(NamedTuple):
    """The runs of an arm that count, and the learning rates that were tried before."""

    runs: ArmRuns
    tried: Sequence[float]


class TunedReproduction(Reproduction):
    """A reproduction of ``arms``. One rule chooses the learning rate of each, on seeds that do not count.

    A tuning run that fails stops its arm: nothing follows from it.
    """

    @abstractmethod
    def arms(self, request: Request) -> Mapping[Hashable, Candidate]:
        """Every arm by its name, at a single depth."""

    def others(self, request: Request) -> list[Cell]:
        """Further cells, which belong to no arm. By default there are none."""
        return []

    def cells(self, request: Request) -> list[Cell]:
        return [*self.pending(request, {}), *self.others(request)]

    def pending(self, request: Request, values: Mapping[Cell, Metrics]) -> list[Cell]:
        trainings = trainings_of(values)
        return [cell for one in self.arms(request).values() for cell in one.pending(trainings)]

    def tuned_runs(self, rows: pd.DataFrame, request: Request) -> dict[Hashable, TunedRuns]:
        """The runs of every arm in prepared ``rows``, by its name."""
        values = measured(rows, self.known_cells(request, rows))
        trainings = trainings_of(values)
        return {name: runs_of(one, values, trainings) for name, one in self.arms(request).items()}

    def usual_cells(self, request: Request, rows: pd.DataFrame) -> list[Cell]:
        """The cells that follow if the middle of each arm's first rates is the best and every run trains."""
        known = self.known_cells(request, rows)
        trainings = trainings_of(measured(rows, known))
        arms = self.arms(request).values()
        while new := [(cell, one.first) for one in arms for cell in one.pending(trainings)]:
            for cell, first in new:
                known.append(cell)
                rate, middle = cell.recipe["rate"], first[len(first) // 2]
                trainings[cell] = TrainingEnd(max(rate / middle, middle / rate), success=True)
        return list(dict.fromkeys(known))


def trainings_of(values: Mapping[Cell, Metrics]) -> dict[Cell, TrainingEnd]:
    """How the trainings among ``values`` ended; the loss of one that diverged is NaN there and ``None`` here."""
    losses = {cell: metrics["final_loss"] for cell, metrics in values.items() if "final_loss" in metrics}
    return {
        cell: TrainingEnd(None if math.isnan(loss) else loss, values[cell].get("success") == 1)
        for cell, loss in losses.items()
    }


def with_edges(ended: pd.DataFrame, arm: Sequence[str], tuned: Mapping[Hashable, TunedRuns]) -> pd.DataFrame:
    """``ended``, one row per run, with a column ``edge``: that of the rates that the run's arm tried, or empty.

    The values of the columns ``arm`` are the arm's name in ``tuned``."""
    edges = [edge(run["rate"], tuned[tuple(run[name] for name in arm)].tried) for run in rows_of(ended)]
    return ended.assign(edge=edges)


def runs_of(one: Candidate, values: Mapping[Cell, Metrics], trainings: Trainings) -> TunedRuns:
    """The runs of an arm with a single depth; none before its learning rate is chosen."""
    (depth,) = one.depths
    tried = sorted({rate for rate, _ in one.losses(depth, trainings)})
    finals = [] if one.tries(depth, one.first, trainings) else one.counted(depth, trainings)
    return TunedRuns(arm(values, finals), tried)

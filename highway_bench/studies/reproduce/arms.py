"""Arms of a reproduction: cells that train, their learning rates, and their runs by seed.

The guard of all comparisons is here: no verdict from a comparison with a net that has not trained. A source's own
criterion of failure decides where it has one; else a network is trained that has left chance behind.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.frames.rows import rows_of
from highway_bench.frames.trainability import edge, training_runs
from highway_bench.plan.expand import matched
from highway_bench.report import columns as column
from highway_bench.report.format import three
from highway_bench.results.schema import OUTCOMES
from highway_bench.studies.decide.candidate import TUNING_SEEDS, Candidate, TrainingEnd, Trainings
from highway_bench.studies.reproduce.base import Metrics, Reproduction, measured
from highway_bench.studies.reproduce.quantities import Quantity, Region, Statistic, mean
from highway_bench.studies.reproduce.request import Request
from highway_bench.success.judging import THRESHOLD

# ---------------------------------------------------------------------------------------------------------- cells


def sgd(steps: int, **words: Any) -> dict[str, Any]:
    """The recipe of SGD with momentum 0.9, whose rate falls to a tenth."""
    return {
        "optimiser": "sgd",
        "momentum": 0.9,
        "decay": 0.1,
        "steps": steps,
        "threshold": THRESHOLD,
    } | words


def trained(block: str, family: str, *, nominal_width: int, **fields: Any) -> Cell:
    """A cell that trains, by default of the task ``trainability``. Its width gives ``block`` the budget (``match``, by
    default the parameters) of plain at ``nominal_width``."""
    task = fields.pop("task", "trainability")
    return matched(
        Cell(task=task, block=block, family=family, width=nominal_width, nominal_width=nominal_width, **fields)
    )


# ---------------------------------------------------------------------------------------------- runs by seed, paired

ArmRuns = Mapping[int, Metrics]
"""The metrics of the runs by seed, without those that failed."""


def arm(values: Mapping[Cell, Metrics], cells: Iterable[Cell]) -> ArmRuns:
    """The runs of ``cells`` by seed. A run that diverged has an infinite final loss."""
    ended = ((cell.seed, values[cell]) for cell in cells if "final_loss" in values[cell])
    return {
        seed: {**run, "final_loss": math.inf if math.isnan(run["final_loss"]) else run["final_loss"]}
        for seed, run in ended
    }


def diverged(runs: ArmRuns) -> int:
    """The number of runs that diverged."""
    return sum(math.isinf(run["final_loss"]) for run in runs.values())


def ratio(name: str, a: ArmRuns, b: ArmRuns, confidence: float) -> Quantity:
    """The final loss of ``a`` over that of ``b``, paired by seed, as a geometric mean with its t interval.

    Infinite if ``a`` diverged at every seed and ``b`` at none, 0 in the opposite case. NaN if only some runs diverged,
    since the others are no sample of the arm, and where a loss is 0."""
    gone_a, gone_b = diverged(a), diverged(b)
    if gone_a or gone_b:
        text = f"{name} (diverged at {gone_a} of {len(a)} seeds, the other at {gone_b} of {len(b)})"
        above, below = gone_a == len(a) and b and not gone_b, gone_b == len(b) and a and not gone_a
        return Quantity.exact(text, math.inf if above else 0.0 if below else math.nan, "×")
    pairs = [(a[seed]["final_loss"], b[seed]["final_loss"]) for seed in sorted(a.keys() & b.keys())]
    return mean(name, [own / other if other > 0 else math.nan for own, other in pairs], confidence, "×")


def loss_record(runs: ArmRuns) -> dict[str, Any]:
    """An arm as a row of a table.

    ``n`` runs, ``diverged`` of them; geometric mean ``loss`` of the others with its 95 % t interval ``low`` to
    ``high`` (NaN where a loss is 0); mean ``accuracy``; medians of ``rate``, ``params`` and ``step_seconds``. A missing
    number is NaN."""
    finite = [run["final_loss"] for run in runs.values() if math.isfinite(run["final_loss"])]

    def average(name: str, function: Any) -> float:
        known = [run[name] for run in runs.values() if not math.isnan(run.get(name, math.nan))]
        return float(function(known)) if known else math.nan

    return {
        "n": len(runs),
        "diverged": diverged(runs),
        **mean("", finite, unit="×").columns("loss"),
        "accuracy": average("test_accuracy", np.mean),
        **{name: average(name, np.median) for name in ("rate", "params", "step_seconds")},
    }


# ----------------------------------------------------------------------------------------------------------- guards


class Trained(NamedTuple):
    """The criterion by which a network has learnt something: a run's ``metric`` lies in ``region``. ``otherwise`` says
    what a network is that does not meet it."""

    metric: str
    region: Region
    text: str
    otherwise: str = "is untrained"

    def by(self, run: Metrics) -> bool:
        value = run.get(self.metric, math.nan)
        return self.region.has(value, value)


def left_chance(dataset: str) -> Trained:
    """The criterion of a loss below half of chance's on ``dataset``."""
    half = make_dataset(dataset).chance_loss / 2
    return Trained("final_loss", Region(most=half), f"a final loss below {three(half)} nat")


def untrained(name: str, runs: Sequence[Metrics], trained: Trained) -> str:
    """The reason why nothing can be compared with ``name``: fewer than half of its runs, which are given by their
    metrics, are ``trained``. Empty if there is no such reason."""
    count = sum(map(trained.by, runs))
    if runs and 2 * count >= len(runs):
        return ""
    return f"{name} {trained.otherwise}: {trained.text} at {count} of {len(runs)} seeds"


MOST_SEEDS: Mapping[str, Any] = {
    "unit": "%",
    "statistic": Statistic.RATE,
    "region": Region(least=50.0),
    "refuted": (Region(most=50.0),),
    "effect": 90.0,
}
"""The fields of a claim that a rate of seeds is above half; it matters if nearly all are such."""


# ---------------------------------------------------------------------------------------------------- tuned rates

RATE_COLUMNS = (
    column.number(
        "rate",
        "rate",
        hint=f"chosen by the losses on other seeds; the best two rates have {len(TUNING_SEEDS)} runs each",
    ),
    column.words("edge", "edge of the rates"),
)
"""The chosen learning rate, and the edge of those that were tried at which it lies."""


class TunedRuns(NamedTuple):
    """The runs of an arm that count, and the learning rates that were tried before."""

    runs: ArmRuns
    tried: Sequence[float]

    @property
    def rate(self) -> dict[str, Any]:
        """The learning rate of the runs, and the edge of those that were tried at which it lies."""
        rate = next((run["rate"] for run in self.runs.values() if "rate" in run), math.nan)
        return {"rate": rate, "edge": edge(rate, self.tried)}


class TunedReproduction(Reproduction):
    """A reproduction of ``arms``, whose learning rates are chosen by the rule of ``decide.rates`` on seeds that do not
    count.

    A tuning run that fails stops its arm: nothing follows from it.
    """

    rates: ClassVar[Sequence[float]]
    """The learning rates to begin with."""

    @abstractmethod
    def arms(self, request: Request) -> Mapping[Hashable, Candidate]:
        """Every arm by its name, at a single depth."""

    def arm(self, block: str, family: str, seeds: Sequence[int], **cell: Any) -> Candidate:
        """An arm at a single depth whose runs have ``seeds``; its ``cell`` is as for ``trained``."""
        template = trained(block, family, **cell)
        return Candidate(template, (template.depth,), self.rates, fresh=seeds, more=())

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

    def ended_runs(
        self, rows: pd.DataFrame, request: Request, arm_of: Callable[[Mapping[str, Any]], Hashable]
    ) -> pd.DataFrame:
        """One row per run on fresh seeds that ended, with a column ``edge``: that of the rates that the run's arm has
        tried, or empty. ``arm_of`` a row is the arm's name."""
        runs = training_runs(self.fresh(rows))
        runs = runs[runs["status"].isin(OUTCOMES)]  # a failed run is no evidence about its network
        tuned = self.tuned_runs(rows, request)
        return runs.assign(edge=[edge(run["rate"], tuned[arm_of(run)].tried) for run in rows_of(runs)])

    def usual_cells(self, request: Request, rows: pd.DataFrame) -> list[Cell]:
        """The cells that follow if the middle of each arm's first rates is the best and every run trains."""
        known = self.known_cells(request, rows)
        trainings = trainings_of(measured(rows, known))
        arms, middle = self.arms(request).values(), self.rates[len(self.rates) // 2]
        while new := [cell for one in arms for cell in one.pending(trainings)]:
            for cell in new:
                known.append(cell)
                rate = cell.recipe["rate"]
                trainings[cell] = TrainingEnd(max(rate / middle, middle / rate), success=True)
        return list(dict.fromkeys(known))


def run_record(runs: pd.DataFrame) -> dict[str, Any]:
    """What the ``ended_runs`` of one arm have in common, and the median time of a step, as columns of a table."""
    return {
        "width": runs["width"].max(),
        "params": runs["params"].max(),
        "rate": runs["rate"].median(),
        "edge": runs["edge"].iloc[0],
        "step_seconds": runs["step_seconds"].median(),
    }


def trainings_of(values: Mapping[Cell, Metrics]) -> dict[Cell, TrainingEnd]:
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
    finals = [] if one.tries(depth, one.first, trainings) else one.counted(depth, trainings)
    return TunedRuns(arm(values, finals), tried)

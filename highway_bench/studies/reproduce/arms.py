"""Arms of a reproduction: cells that train, their learning rates, and their runs.

The guard of all comparisons is here: no verdict from a comparison with a net that has not trained. A source's own
criterion of failure decides where it has one; else a network is trained that has left chance behind.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.frames.trainability import edge
from highway_bench.plan.expand import matched
from highway_bench.report import columns as column
from highway_bench.report.format import three
from highway_bench.studies.decide.candidate import TUNING_SEEDS, Candidate, Trainings, end_of, usual_metrics
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


# ----------------------------------------------------------------------------------------------------------- runs

MEASURED = (
    "final_loss",
    "success",
    "steps_to_threshold",
    "train_accuracy",
    "test_accuracy",
    "rate",
    "params",
    "step_seconds",
)
"""The metrics of a run."""


def runs_of(
    values: Mapping[Cell, Metrics], arms: Mapping[tuple[Any, ...], Iterable[Cell]], by: Sequence[str]
) -> pd.DataFrame:
    """One row per run that ended, in the order of ``arms``: the arm's name in the columns ``by``, ``seed``, ``width``
    and ``MEASURED``, NaN where there is none. A run that diverged has an infinite final loss."""
    records = [
        {**values[cell], **dict(zip(by, arm, strict=True)), "seed": cell.seed, "width": cell.width}
        for arm, cells in arms.items()
        for cell in cells
        if "final_loss" in values[cell]
    ]
    kinds = {"seed": int, "width": int, **dict.fromkeys(MEASURED, float)}
    runs = pd.DataFrame(records, columns=[*by, *kinds]).astype(kinds)
    return runs.assign(final_loss=runs["final_loss"].fillna(math.inf))


def of_arm(runs: pd.DataFrame, **arm: Any) -> pd.DataFrame:
    """The ``runs`` with these values of columns."""
    for name, value in arm.items():
        runs = runs[runs[name] == value]
    return runs


def diverged(runs: pd.DataFrame) -> int:
    """The number of runs that diverged."""
    return int(np.isinf(runs["final_loss"]).sum())


def ratio(name: str, a: pd.DataFrame, b: pd.DataFrame, confidence: float) -> Quantity:
    """The final loss of the runs ``a`` over that of ``b``, paired by seed, as a geometric mean with its t interval.

    Infinite if ``a`` diverged at every seed and ``b`` at none, 0 in the opposite case. NaN if only some runs diverged,
    since the others are no sample of the arm, and where a loss is 0."""
    gone_a, gone_b = diverged(a), diverged(b)
    if gone_a or gone_b:
        text = f"{name} (diverged at {gone_a} of {len(a)} seeds, the other at {gone_b} of {len(b)})"
        above, below = gone_a == len(a) and len(b) and not gone_b, gone_b == len(b) and len(a) and not gone_a
        return Quantity.exact(text, math.inf if above else 0.0 if below else math.nan, "×")
    pairs = a.merge(b, on="seed", suffixes=("", "_other")).sort_values("seed")
    other = pairs["final_loss_other"]
    return mean(name, pairs["final_loss"] / other.where(other > 0), confidence, "×")


def record_of(runs: pd.DataFrame) -> dict[str, Any]:
    """The runs of an arm as a row of a table.

    ``n`` runs, ``diverged`` of them; geometric mean ``loss`` of the others with its 95 % t interval ``low`` to
    ``high`` (NaN where a loss is 0); mean ``accuracy``; medians of ``rate``, ``width``, ``params`` and
    ``step_seconds``; ``edge`` where the runs have it. A missing number is NaN."""
    losses = runs["final_loss"]
    return {
        "n": len(runs),
        "diverged": diverged(runs),
        **mean("", losses[np.isfinite(losses)], unit="×").columns("loss"),
        "accuracy": runs["test_accuracy"].mean(),
        "edge": next(iter(runs.get("edge", ())), ""),
        **{name: runs[name].median() for name in ("rate", "width", "params", "step_seconds")},
    }


def table_by(
    by: Sequence[str], runs: pd.DataFrame, further: Callable[[pd.DataFrame], Mapping[str, Any]] = lambda own: {}
) -> pd.DataFrame:
    """A table with one row per arm, which has the columns ``by``: ``record_of`` its ``runs``, and what is ``further``
    known of them."""
    arms = runs.groupby([*by], sort=False)
    return pd.DataFrame([{**dict(zip(by, arm, strict=True)), **record_of(own), **further(own)} for arm, own in arms])


COLUMNS: Mapping[str, column.Column] = {
    "block": column.words("block", "block"),
    "depth": column.whole("depth", "layers"),
    "width": column.whole("width", "width"),
    "params": column.whole("params", "parameters"),
    "n": column.whole("n", "seeds"),
    "diverged": column.whole("diverged", "diverged"),
    "loss": column.spread("loss", "final training loss", "low", "high", "nat", "geometric mean and 95 % over seeds"),
    "accuracy": column.percent("accuracy", "test accuracy"),
    "rate": column.number(
        "rate",
        "rate",
        hint=f"chosen by the losses on other seeds; the best two rates have {len(TUNING_SEEDS)} runs each",
    ),
    "edge": column.words("edge", "edge of the rates"),
    "step_seconds": column.number("step_seconds", "step", "s"),
}
"""The columns of ``record_of`` in a table for print."""


def columns(*names: str) -> list[column.Column]:
    """Those of ``COLUMNS`` with these names."""
    return [COLUMNS[name] for name in names]


# ----------------------------------------------------------------------------------------------------------- guards


class Trained(NamedTuple):
    """The criterion by which a network has learnt something: a run's ``metric`` lies in ``region``. ``otherwise`` says
    what a network is that does not meet it."""

    metric: str
    region: Region
    text: str
    otherwise: str = "is untrained"

    def by(self, value: float) -> bool:
        """Whether a run whose metric has this ``value`` meets it."""
        return self.region.has(value, value)

    def count(self, runs: pd.DataFrame) -> int:
        """The number of ``runs`` that meet it."""
        return sum(map(self.by, runs[self.metric]))


def left_chance(dataset: str) -> Trained:
    """The criterion of a loss below half of chance's on ``dataset``."""
    half = make_dataset(dataset).chance_loss / 2
    return Trained("final_loss", Region(most=half), f"a final loss below {three(half)} nat")


def untrained(name: str, runs: pd.DataFrame, trained: Trained) -> str:
    """The reason why nothing can be compared with ``name``: fewer than half of its ``runs`` are ``trained``. Empty if
    there is no such reason."""
    count = trained.count(runs)
    if len(runs) and 2 * count >= len(runs):
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


class TunedReproduction(Reproduction):
    """A reproduction of ``arms``, whose learning rates are chosen by the rule of ``success.rates`` on seeds that do not
    count.

    A tuning run that fails stops its arm: nothing follows from it.
    """

    rates: ClassVar[Sequence[float]]
    """The learning rates to begin with."""
    by: ClassVar[tuple[str, ...]]
    """What the names of the arms say."""

    @abstractmethod
    def arms(self, request: Request) -> Mapping[tuple[Any, ...], Candidate]:
        """Every arm by its name, at a single depth."""

    def arm(self, request: Request, block: str, family: str, seeds: Sequence[int] = (), **cell: Any) -> Candidate:
        """An arm at a single depth whose runs have ``seeds``, by default those of ``request``; its ``cell`` is as for
        ``trained``."""
        template = trained(block, family, device=request.device, **cell)
        return Candidate(template, (template.depth,), self.rates, fresh=seeds or self.seeds(request), more=())

    def others(self, request: Request) -> list[Cell]:
        """Further cells, which belong to no arm. By default there are none."""
        return []

    def cells(self, request: Request) -> list[Cell]:
        return [*self.pending(request, {}), *self.others(request)]

    def pending(self, request: Request, values: Mapping[Cell, Metrics]) -> list[Cell]:
        trainings = trainings_of(values)
        return [cell for one in self.arms(request).values() for cell in one.pending(trainings)]

    def runs(self, rows: pd.DataFrame, request: Request) -> pd.DataFrame:
        """The runs of every arm that count, none before its learning rate is chosen; ``edge`` is that of the rates that
        the arm has tried, if its own lies there."""
        values = measured(rows, self.known_cells(request, rows))
        trainings = trainings_of(values)
        arms = self.arms(request)
        runs = runs_of(values, {name: finals_of(one, trainings) for name, one in arms.items()}, self.by)
        tried = {name: {rate for rate, _ in one.losses(one.depths[0], trainings)} for name, one in arms.items()}
        names = runs[[*self.by]].itertuples(index=False, name=None)
        return runs.assign(edge=[edge(rate, tried[name]) for rate, name in zip(runs["rate"], names, strict=True)])

    def usual_cells(self, request: Request, rows: pd.DataFrame) -> list[Cell]:
        """The cells that follow if the middle of each arm's first rates is the best and every run trains."""
        return self.known_cells(request, rows, partial(usual_metrics, middle=self.rates[len(self.rates) // 2]))


def trainings_of(values: Mapping[Cell, Metrics]) -> Trainings:
    """How the trainings among ``values`` ended."""
    return {cell: end_of(metrics) for cell, metrics in values.items() if "final_loss" in metrics}


def finals_of(one: Candidate, trainings: Trainings) -> list[Cell]:
    """The runs of an arm with a single depth that count; none before its learning rate is chosen."""
    (depth,) = one.depths
    return [] if one.tries(depth, one.first, trainings) else one.counted(depth, trainings)

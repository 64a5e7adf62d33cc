"""The highway paper's Figure 1: best of a random search for plain and highway networks of 10, 20, 50 and 100 layers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.errors import BadInput
from highway_bench.report import columns as column
from highway_bench.report.format import three
from highway_bench.reproduce._cells import trained
from highway_bench.reproduce._figure1_claims import LONG, SEARCH, VERSION, claims_of
from highway_bench.reproduce._trial_pictures import ARMS, best, best_of
from highway_bench.reproduce._trials import losses_by_trial, table_of
from highway_bench.reproduce.base import Conclusion, NotAttempted, Reproduction, register_reproduction
from highway_bench.reproduce.claims import Claim
from highway_bench.reproduce.quantities import BEST_OF
from highway_bench.reproduce.request import Request
from highway_bench.success.judging import THRESHOLD

DEPTHS = (10, 20, 50, 100)  # as the papers count: the plain layer before the stack is one of them
NOMINAL = 71  # units of plain; highway has 50: 5,112 and 5,100 parameters per layer
BATCH = 100


class SearchScale(NamedTuple):
    """The size of a run: data set, steps, trials per arm and depth, seeds of the winner, networks per population."""

    dataset: str
    steps: int
    trials: int
    seeds: int
    together: int


SCALES = {
    "desk": SearchScale("mnist-5k", 500, 60, 5, 20),
    "paper": SearchScale("mnist", 400 * 600, 100, 5, 100),  # 400 epochs of 600 batches
}


@register_reproduction(
    "figure1",
    title="Best of a random search, 10 to 100 layers, plain against highway",
    source="arXiv:1505.00387 and arXiv:1507.06228, Figure 1",
)
class Figure1(Reproduction):
    """Dense networks on 5,000 digits of MNIST, trained by SGD with momentum and a rate that falls exponentially.

    Rate, momentum, decay and activation are drawn at random, and for highway the gate bias too; both arms have the same
    number of trials. The paper names these dimensions but not their ranges; the priors are
    ``highway_bench.tuning.FIGURE_1``. Its batch size (100) and its number of runs per curve (40 or 100) are not certain
    either. The plain first layer is always rectified here, whatever the activation of the other layers.
    """

    takes = frozenset({"trials", "steps", "seeds", "depth"})
    version = VERSION
    scales = tuple(SCALES)
    not_attempted = (
        NotAttempted(
            "the best loss at each depth, in numbers",
            LONG,
            "the text has none, and values read from a plot are not exact",
        ),
    )

    def cells(self, request: Request) -> list[Cell]:
        if 1 in request.depth:
            raise BadInput("the depth counts the plain first layer, so it is 2 at least")
        scale = SCALES[self.scale_of(request)]
        recipe: dict[str, Any] = {
            "optimiser": "sgd",
            "steps": request.steps or scale.steps,
            "threshold": THRESHOLD,
            "together": scale.together,
            "search": {"space": "figure-1", "trials": request.trials or scale.trials, "seed": SEARCH},
        }
        return [
            trained(
                block,
                "dense",
                depth=depth - 1,
                nominal_width=NOMINAL,
                batch_size=BATCH,
                dataset=scale.dataset,
                recipe=recipe,
                device=request.device,
                seed=seed,
            )
            for depth in request.depth or DEPTHS
            for block in ARMS
            for seed in self.seeds(request, scale.seeds)
        ]

    def claims(self, request: Request) -> Sequence[Claim]:
        scale = SCALES[self.scale_of(request)]
        papers_budget = request.scale == "paper" and request.steps is None and request.trials is None
        short = "" if papers_budget else "the budget is smaller than the paper's"
        return claims_of(request.trials or scale.trials, len(self.seeds(request, scale.seeds)), short)

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        trials = losses_by_trial(rows)
        table = table_of(rows, trials)
        return Conclusion(
            findings=[claim.judge((trials, table)) for claim in self.claims(request)],
            tables=[_shown(table)],
            pictures=[best(table, _chance()), best_of(trials, _chance())] if len(table) else [],
        )


def _chance() -> float:
    """The loss of the constant predictor; that of the larger data set is equal within 0.1 %."""
    return make_dataset("mnist-5k").chance_loss


def _median_steps(record: column.Record) -> str:
    steps = record["steps"]
    return three(median(steps)) if steps else ""


def _shown(table: pd.DataFrame) -> column.Shown:
    columns = [
        column.words("block", "block"),
        column.whole("depth", "layers"),
        column.whole("trials", "trials"),
        column.number("best", "best loss", "nat", "lowest final training loss of the trials: the paper's statistic"),
        column.number("expected", f"best of {BEST_OF}", "nat", "expected: the mean of its log₁₀ over draws of trials"),
        column.number("median", "median loss", "nat", "of all trials; ∞ where half of them diverged"),
        column.whole("diverged", "diverged"),
        column.spread(
            "winner",
            "winner on fresh seeds",
            "winner_low",
            "winner_high",
            "nat",
            "geometric mean of its final losses, 95 % t interval of log10",
        ),
        column.whole("seeds", "seeds"),
        column.computed("steps to threshold", _median_steps, "median of these seeds; ∞: never"),
        column.whole("params", "parameters", "of the whole network; per layer the arms are equal within 0.3 %"),
        column.words("won", "the winner"),
    ]
    return column.shown("figure1", "Best of a random search", table.sort_values(["depth", "block"]), columns)

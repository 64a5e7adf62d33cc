"""The highway paper's Figure 1: best of a random search for plain and highway networks of 10, 20, 50 and 100 layers."""

from __future__ import annotations

import math
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.measure.statistics import CONFIDENCE
from highway_bench.report import columns as column
from highway_bench.report.format import three
from highway_bench.report.rows import rows_of
from highway_bench.reproduce._cells import trained
from highway_bench.reproduce._trial_pictures import ARMS, best, best_of, curves
from highway_bench.reproduce._trials import Ratio, Trials, best_ratio, losses_by_trial, table_of
from highway_bench.reproduce.base import (
    Conclusion,
    Evidence,
    Finding,
    NotAttempted,
    Reproduction,
    Verdict,
    register_reproduction,
)
from highway_bench.reproduce.request import Request
from highway_bench.success.judging import THRESHOLD

DEPTHS = (10, 20, 50, 100)  # as the papers count: the plain layer before the stack is one of them
NOMINAL = 71  # units of plain; highway has 50: 5,112 and 5,100 parameters per layer
BATCH = 100
LONG, SHORT = "arXiv:1507.06228, Figure 1", "arXiv:1505.00387, Figure 1"
READING = "a reading of arXiv:1505.00387, Figure 1"

# The rules, fixed before any run. The statistic is the paper's: the lowest final training loss of the trials. Its
# interval is a percentile bootstrap over pairs of trials: trial i has the same rate, momentum, decay and activation in
# both arms. (The bootstrap of a minimum is rough: it cannot go below the lowest trial.) Nine claims are judged
# together, so the error of each interval is a ninth of the usual one (Bonferroni).
CLAIMS = 9
LEVEL = 1 - (1 - CONFIDENCE) / CLAIMS
BETTER = "reproduced if the interval's lower end is above 1, contradicted if its upper end is below 1"
ABOUT = 10.0  # losses within a factor of ten count as about equal: the paper speaks of orders of magnitude
TWICE = 2.0  # plain counts as about as good up to twice highway's loss
HUNDRED = 100.0


class SearchScale(NamedTuple):
    """The size of a run: data set, steps, trials per arm and depth, seeds of the winner, networks per population."""

    dataset: str
    steps: int
    trials: int
    seeds: int
    together: int


SCALES = {
    "desk": SearchScale("mnist-5k", 500, 20, 5, 20),
    "paper": SearchScale("mnist", 400 * 600, 100, 5, 100),  # 400 epochs of 600 batches
}


@register_reproduction(
    "figure1",
    title="Best of a random search, 10 to 100 layers, plain against highway",
    source="arXiv:1505.00387 and arXiv:1507.06228, Figure 1",
)
class Figure1(Reproduction):
    """Dense networks on MNIST, trained by SGD with momentum and a rate that falls exponentially.

    Rate, momentum, decay and activation are drawn at random, and for highway the gate bias too; both arms have the same
    number of trials. The paper names these dimensions but not their ranges; the priors are
    ``highway_bench.tuning.FIGURE_1``. Its batch size (100) and its number of runs per curve (40 or 100) are not certain
    either. The plain first layer is always rectified here, whatever the activation of the other layers.
    """

    takes = frozenset({"trials", "steps", "seeds", "depth"})
    scales = tuple(SCALES)
    not_attempted = (
        NotAttempted(
            "the best loss at each depth, in numbers",
            LONG,
            "the text has none, and values read from a plot are not exact",
        ),
        NotAttempted("a 900-layer net on CIFAR-100, stopped at 80 epochs", SHORT, "the data are not here"),
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
            "search": {"space": "figure-1", "trials": request.trials or scale.trials, "seed": 0},
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
            for seed in range(request.seeds or scale.seeds)
        ]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        trials = losses_by_trial(rows)
        table = table_of(rows, trials)
        return Conclusion(
            findings=_findings(trials, table, request),
            tables=[_shown(table)],
            pictures=[best(table), curves(rows, trials), best_of(trials)] if len(table) else [],
        )


def _findings(trials: Trials, table: pd.DataFrame, request: Request) -> list[Finding]:
    """The findings, always on the same claims; those about depths that were not run are not testable."""
    orders, plain = _ratio(trials, ("plain", 100), ("highway", 100)), _ratio(trials, ("plain", 100), ("plain", 10))
    fifty, hundred = (_ratio(trials, ("highway", depth), ("highway", 10)) for depth in (50, 100))
    return [
        _at_ten(_ratio(trials, ("plain", 10), ("highway", 10))),
        *(_deeper(depth, _ratio(trials, ("plain", depth), ("highway", depth))) for depth in (20, 50, 100)),
        Finding(
            published="a 100-layer highway net is more than two orders of magnitude better than a plain one",
            source=LONG,
            measured=f"plain / highway {_text(orders)}",
            rule=f"reproduced if the lower end is {HUNDRED:g} or more; at the paper's own budget contradicted if "
            "the upper end is below it",
            verdict=_at_least(orders, HUNDRED, request),
        ),
        Finding(
            published="plain nets degrade strongly as depth grows",
            source=LONG,
            measured=f"plain, 100 / 10 layers: {_text(plain)}",
            rule=f"reproduced if the lower end is above {ABOUT:g}, contradicted if the upper end is below 1",
            verdict=_above(plain, ABOUT),
        ),
        Finding(
            published="highway nets of 50 and 100 layers do about as well as those of 10 and 20",
            source=LONG,
            measured=f"highway, 50 / 10 layers: {_text(fifty)}; 100 / 10 layers: {_text(hundred)}",
            rule=f"reproduced if both upper ends are below {ABOUT:g}, contradicted if a lower end is above it",
            verdict=_about_equal(fifty, hundred),
        ),
        _absolute(trials, request),
        _faster(table),
    ]


def _at_ten(ratio: Ratio | None) -> Finding:
    verdict = Verdict.NOT_TESTABLE
    if ratio is not None and (ratio.high <= TWICE or ratio.low > TWICE):
        verdict = Verdict.REPRODUCED if ratio.high <= TWICE else Verdict.CONTRADICTED
    return Finding(
        published="10 layers: plain is as good as highway, or better",
        source=READING,
        verdict=verdict,
        evidence=Evidence.SECONDARY,
        measured=f"plain / highway {_text(ratio)}",
        rule=f"reproduced if the upper end is {TWICE:g} or less, contradicted if the lower end is above it",
    )


def _deeper(depth: int, ratio: Ratio | None) -> Finding:
    return Finding(
        published=f"{depth} layers: highway ends at a lower loss than plain",
        source=READING,
        rule=BETTER,
        evidence=Evidence.SECONDARY,
        measured=f"plain / highway {_text(ratio)}",
        verdict=_above(ratio, 1.0),
    )


def _absolute(trials: Trials, request: Request) -> Finding:
    best = {depth: float(trials["plain", depth].min()) for depth in (10, 20) if ("plain", depth) in trials}
    reached = len(best) == 2 and all(loss < 1e-4 for loss in best.values())
    missed = Verdict.CONTRADICTED if _has_papers_budget(request) and len(best) == 2 else Verdict.NOT_TESTABLE
    return Finding(
        published="plain nets of 10 and 20 layers reach a mean loss below 1e-4",
        source=LONG,
        measured=", ".join(f"{depth} layers {three(loss)}" for depth, loss in best.items()) or "not run",
        rule="best trial below 1e-4 at both; a smaller budget than the paper's cannot contradict it",
        verdict=Verdict.REPRODUCED if reached else missed,
    )


def _faster(table: pd.DataFrame) -> Finding:
    """Which arm's winner reaches the threshold in fewer steps; a run that never reaches it counts as the slowest."""
    steps = {(row["block"], row["depth"]): row["steps"] for row in rows_of(table)}
    parts, orders = [], []
    for depth in (20, 50, 100):
        plain, highway = (steps.get((arm, depth), []) for arm in ARMS)
        if plain and highway:
            parts.append(f"{depth} layers: plain {three(median(plain))}, highway {three(median(highway))}")
            orders.append(-1 if max(highway) < min(plain) else 1 if max(plain) < min(highway) else 0)
    verdict = Verdict.NOT_TESTABLE
    if len(orders) == 3 and any(orders):
        verdict = (
            Verdict.REPRODUCED
            if all(order < 0 for order in orders)
            else Verdict.CONTRADICTED
            if max(orders) > 0
            else Verdict.NOT_TESTABLE
        )
    return Finding(
        published="highway nets converge faster than plain ones",
        source=LONG,
        verdict=verdict,
        measured="median steps to a tenth of chance's loss: " + ("; ".join(parts) or "not run"),
        rule="the winners on fresh seeds, at 20, 50 and 100 layers: reproduced if every highway seed gets "
        "there before every plain one, contradicted where every plain one is first (∞: never)",
    )


def _ratio(trials: Trials, over: tuple[str, int], under: tuple[str, int]) -> Ratio | None:
    """The ratio of two best losses: ``None`` if one was not run, NaN, which decides no rule, if every trial of both
    diverged."""
    if over not in trials or under not in trials:
        return None
    if not any(np.isfinite(trials[arm].min()) for arm in (over, under)):
        return Ratio(math.nan, math.nan, math.nan)
    return best_ratio(trials[over], trials[under], LEVEL)


def _text(ratio: Ratio | None) -> str:
    if ratio is None:
        return "not run"
    return "none: every trial of both diverged" if math.isnan(ratio.value) else str(ratio)


def _above(ratio: Ratio | None, bound: float) -> Verdict:
    if ratio is None:
        return Verdict.NOT_TESTABLE
    return Verdict.REPRODUCED if ratio.low > bound else Verdict.CONTRADICTED if ratio.high < 1 else Verdict.NOT_TESTABLE


def _about_equal(*ratios: Ratio | None) -> Verdict:
    known = [ratio for ratio in ratios if ratio is not None]
    if any(ratio.low > ABOUT for ratio in known):
        return Verdict.CONTRADICTED
    every = len(known) == len(ratios) and all(ratio.high < ABOUT for ratio in known)
    return Verdict.REPRODUCED if every else Verdict.NOT_TESTABLE


def _at_least(ratio: Ratio | None, bound: float, request: Request) -> Verdict:
    if ratio is not None and ratio.low >= bound:
        return Verdict.REPRODUCED
    missed = ratio is not None and ratio.high < bound and _has_papers_budget(request)
    return Verdict.CONTRADICTED if missed else Verdict.NOT_TESTABLE


def _has_papers_budget(request: Request) -> bool:
    """Whether the budget is the paper's, so a missed bound may contradict the claim."""
    return request.scale == "paper" and request.steps is None and request.trials is None


def _median_steps(record: column.Record) -> str:
    steps = record["steps"]
    return three(median(steps)) if steps else ""


def _shown(table: pd.DataFrame) -> column.Shown:
    columns = [
        column.words("block", "block"),
        column.whole("depth", "layers"),
        column.whole("trials", "trials"),
        column.number("best", "best loss", "nat", "lowest final training loss of the trials: the paper's statistic"),
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

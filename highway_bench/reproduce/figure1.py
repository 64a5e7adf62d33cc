"""The highway paper's Figure 1: the best of a random search for plain and highway nets of 10, 20, 50 and 100 layers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.report import present
from highway_bench.report.number import three
from highway_bench.reproduce._base import (
    Asked,
    Finding,
    NotAttempted,
    Outcome,
    Reproduction,
    Verdict,
    register_reproduction,
)
from highway_bench.reproduce._cells import trained
from highway_bench.reproduce._trial_pictures import ARMS, best, best_of, curves
from highway_bench.reproduce._trials import Ratio, Trials, best_ratio, table_of, trials_of

DEPTHS = (10, 20, 50, 100)  # as the papers count: the plain layer before the stack is one of them
NOMINAL = 71  # plain's units; highway gets 50: 5,112 and 5,100 parameters a layer
BATCH = 100
LONG, SHORT = "arXiv:1507.06228, Figure 1", "arXiv:1505.00387, Figure 1"

# The rules, agreed before any run. The statistic is the paper's own: the lowest final training loss of the trials. Its
# interval is a percentile bootstrap over trials, drawn in pairs, for trial i has the same rate, momentum, decay and
# activation in both arms. (The bootstrap of a minimum is rough: it cannot go below the lowest trial seen.)
BETTER = "reproduced if the interval's lower end is above 1, contradicted if its upper end is below 1"
ABOUT = 10.0  # losses within a factor of ten are about equal, on a scale on which the paper speaks of orders
TWICE = 2.0  # where plain should be the better of the two, a loss of up to twice highway's is about as good
HUNDRED = 100.0


class Scale(NamedTuple):
    """How much is run: data, steps, trials an arm and depth, seeds of the winner, and trials trained as one."""

    dataset: str
    steps: int
    trials: int
    seeds: int
    together: int


SCALES = {
    "desk": Scale("mnist-5k", 500, 20, 5, 20),
    "paper": Scale("mnist", 400 * 600, 100, 5, 100),  # 400 epochs of 600 batches
}


@register_reproduction("figure1", title="Best of a random search, 10 to 100 layers, plain against highway",
                       source="arXiv:1505.00387 and arXiv:1507.06228, Figure 1")
class Figure1(Reproduction):
    """Dense nets on MNIST, trained by SGD with momentum and a rate that falls exponentially.

    Rate, momentum, decay and activation are drawn at random, for highway the gate bias as well; both arms get the same
    number of trials. The paper names the dimensions and not their ranges: the priors are those of ``search``. Its
    batch and the number of runs behind a curve are not certain either (100; 40 or 100).
    """

    takes = frozenset({"trials", "steps", "seeds", "depths"})
    scales = tuple(SCALES)
    not_attempted = (
        NotAttempted("the best loss at each depth, in numbers", LONG, "the text has none, and a plot read by eye is no "
                                                                      "number"),
        NotAttempted("a 900-layer net on CIFAR-100, stopped at 80 epochs", SHORT, "CIFAR-100 is not at hand"),
    )

    def cells(self, asked: Asked) -> list[Cell]:
        scale = SCALES[asked.scale]
        recipe: dict[str, Any] = {
            "optimiser": "sgd", "steps": asked.steps or scale.steps, "threshold": 0.1, "together": scale.together,
            "search": {"space": "figure-1", "trials": asked.trials or scale.trials, "seed": 0},
        }
        return [
            trained(block, "dense", depth=depth - 1, nominal_width=NOMINAL, batch_size=BATCH, dataset=scale.dataset,
                    recipe=recipe, device=asked.device, seed=seed)
            for depth in asked.depths or DEPTHS
            for block in ARMS
            for seed in range(asked.seeds or scale.seeds)
        ]

    def outcome(self, rows: pd.DataFrame, asked: Asked) -> Outcome:
        trials = trials_of(rows)
        table = table_of(rows, trials)
        return Outcome(findings=_findings(trials, table, asked), tables=[_shown(table)],
                       pictures=[best(table), curves(rows, trials), best_of(trials)] if len(table) else [])


def _findings(trials: Trials, table: pd.DataFrame, asked: Asked) -> list[Finding]:
    depths = sorted({depth for _, depth in trials})
    findings = [_at_depth(trials, depth) for depth in depths if _both(trials, depth)]
    deepest, shallowest = max(depths, default=0), min(depths, default=0)
    if not _both(trials, deepest) or deepest == shallowest:
        return findings
    plain = best_ratio(trials["plain", deepest], trials["plain", shallowest])
    highway = best_ratio(trials["highway", deepest], trials["highway", shallowest])
    arms = best_ratio(trials["plain", deepest], trials["highway", deepest])
    findings += [
        Finding(published=f"a {deepest}-layer highway net is more than two orders of magnitude better than a plain one",
                source=LONG, measured=f"plain / highway {arms}",
                rule=f"reproduced if the lower end is {HUNDRED:g} or more; at the paper's own budget contradicted if "
                     "the upper end is below it",
                verdict=_against(arms, HUNDRED, asked)),
        Finding(published="plain nets degrade strongly as depth grows", source=LONG, rule=BETTER,
                measured=f"plain {deepest} / {shallowest} layers: {plain}", verdict=_above_one(plain)),
        Finding(published=f"highway nets of {deepest} layers do about as well as those of {shallowest}", source=LONG,
                measured=f"highway {deepest} / {shallowest} layers: {highway}",
                rule=f"reproduced if the upper end is below {ABOUT:g}, contradicted if the lower end is above it",
                verdict=_about(highway)),
        _absolute(trials, asked),
        _faster(table),
    ]
    return findings


def _at_depth(trials: Trials, depth: int) -> Finding:
    ratio = best_ratio(trials["plain", depth], trials["highway", depth])
    if depth <= 10:
        verdict = Verdict.REPRODUCED if ratio.high <= TWICE else Verdict.CONTRADICTED if ratio.low > 1 else None
        return Finding(published=f"{depth} layers: plain is as good as highway, or better", source=SHORT,
                       measured=f"plain / highway {ratio}", verdict=verdict or Verdict.NOT_TESTABLE,
                       rule=f"reproduced if the upper end is {TWICE:g} or less, contradicted if the lower end is "
                            "above 1")
    return Finding(published=f"{depth} layers: highway ends at a lower loss than plain", source=SHORT, rule=BETTER,
                   measured=f"plain / highway {ratio}", verdict=_above_one(ratio))


def _absolute(trials: Trials, asked: Asked) -> Finding:
    best = {depth: float(trials["plain", depth].min()) for depth in (10, 20) if ("plain", depth) in trials}
    reached = bool(best) and all(loss < 1e-4 for loss in best.values())
    missed = Verdict.CONTRADICTED if _is_papers(asked) and best else Verdict.NOT_TESTABLE
    return Finding(published="plain nets of 10 and 20 layers reach a mean loss below 1e-4", source=LONG,
                   measured=", ".join(f"{depth} layers {three(loss)}" for depth, loss in best.items()) or "not run",
                   rule="best trial below 1e-4; a smaller budget than the paper's cannot contradict it",
                   verdict=Verdict.REPRODUCED if reached else missed)


def _faster(table: pd.DataFrame) -> Finding:
    steps = table.pivot_table(index="depth", columns="block", values="steps", dropna=False).reindex(columns=list(ARMS))
    told, faster = [], []
    for depth, row in steps.iterrows():
        plain, highway = row["plain"], row["highway"]
        told.append(f"{depth} layers: plain {three(plain)}, highway {three(highway)}")
        faster.append(bool(highway < plain or (math.isnan(plain) and not math.isnan(highway))))
    deep = [was for depth, was in zip(steps.index, faster, strict=True) if depth > 10]
    verdict = Verdict.NOT_TESTABLE if not deep else Verdict.REPRODUCED if all(deep) else Verdict.CONTRADICTED
    return Finding(published="highway nets converge faster than plain ones", source=LONG,
                   measured="median steps to a tenth of chance's loss: " + "; ".join(told),
                   rule="the winners on fresh seeds, fewer steps at every depth beyond 10 (a dash never got there)",
                   verdict=verdict)


def _both(trials: Trials, depth: int) -> bool:
    """Whether the arms can be compared at ``depth``: where all trials of one diverged, it ranks last."""
    there = all((arm, depth) in trials for arm in ARMS)
    return there and any(np.isfinite(trials[arm, depth].min()) for arm in ARMS)


def _above_one(ratio: Ratio) -> Verdict:
    return Verdict.REPRODUCED if ratio.low > 1 else Verdict.CONTRADICTED if ratio.high < 1 else Verdict.NOT_TESTABLE


def _about(ratio: Ratio) -> Verdict:
    if ratio.high < ABOUT:
        return Verdict.REPRODUCED
    return Verdict.CONTRADICTED if ratio.low > ABOUT else Verdict.NOT_TESTABLE


def _against(ratio: Ratio, bound: float, asked: Asked) -> Verdict:
    if ratio.low >= bound:
        return Verdict.REPRODUCED
    return Verdict.CONTRADICTED if ratio.high < bound and _is_papers(asked) else Verdict.NOT_TESTABLE


def _is_papers(asked: Asked) -> bool:
    """Whether the budget is the paper's, so that a miss may count against it."""
    return asked.scale == "paper" and asked.steps is None and asked.trials is None


def _shown(table: pd.DataFrame) -> present.Shown:
    columns = [
        present.words("block", "block"), present.whole("depth", "layers"), present.whole("trials", "trials"),
        present.number("best", "best loss", "nat", "lowest final training loss of the trials: the paper's statistic"),
        present.number("median", "median loss", "nat", "of all trials; ∞ where half of them diverged"),
        present.whole("diverged", "diverged"),
        present.spread("winner", "winner on fresh seeds", "winner_low", "winner_high", "nat",
                       "geometric mean of its final losses, 95 % t interval of log10"),
        present.whole("seeds", "seeds"), present.number("steps", "steps to threshold", "1", "median; a dash: never"),
        present.words("won", "the winner"),
    ]
    return present.shown("figure1", "Best of a random search", table.sort_values(["depth", "block"]), columns)

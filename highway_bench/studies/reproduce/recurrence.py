"""Long ranges through time: plain, residual and gated recurrence on the adding problem, at a short and a long range."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from highway_bench.plan.settings import FIRST_ADAMW_RATES
from highway_bench.report import columns as column
from highway_bench.report.format import count
from highway_bench.studies.decide.candidate import Candidate
from highway_bench.studies.reproduce.arms import TunedReproduction, columns, of_arm, table_by
from highway_bench.studies.reproduce.base import Evaluated, NotAttempted, register_reproduction
from highway_bench.studies.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.studies.reproduce.long_range import steps_text
from highway_bench.studies.reproduce.quantities import Quantity, Region, Share, Statistic
from highway_bench.studies.reproduce.request import Request
from highway_bench.success.judging import THRESHOLD

SHORT, LONG = 10, 100  # steps of a series
WIDTH, BATCH = 32, 32
STEPS, SEEDS = 2_000, 10
BLOCKS = {"plain": "h = g(z)", "residual": "h + g(z)", "highway": "(1 − T) h + T g(z)"}
SHORTCUTS = {"residual": "residual", "highway": "gated"}
LECTURE = "a lecture on highway networks"

# Shares of seeds, in percent
MOST, LEAST, HALF = 10.0, 90.0, 50.0


@register_reproduction(
    "recurrence",
    title="Adding two numbers of a series by plain, residual and gated recurrence",
    source=LECTURE,
)
class RecurrenceThroughTime(TunedReproduction):
    """One tanh layer with a block, applied at every step of a series of 10 or 100 steps, read at the last step.

    Its input is its own last output and the step's number and mark; the sum of the two marked numbers is the target.
    A layer of one direction must remember the first number until the end. In the gated layer the bias is −ln T for T
    steps. Adam with clipped gradients, equal parameters, the rate tuned for every block and length; the sizes were
    chosen on other seeds. Each run has other training items.
    """

    takes = frozenset({"steps", "seeds"})
    default_seeds = SEEDS
    rates = FIRST_ADAMW_RATES
    by = ("length", "block")
    # Versions 1 and 2 had rates whose best was the lowest or highest. In version 3 a single run chose the rate
    version = RuleVersion(4, "2026-11-28", seen=52)
    not_attempted = (
        NotAttempted(
            "LSTM and GRU, whose gates read more than one state", "arXiv:1603.03116", "they are no blocks here"
        ),
    )

    def arms(self, request: Request) -> dict[tuple[Any, ...], Candidate]:
        recipe = {
            "optimiser": "adam",
            "decay": 0.1,
            "clip": 1.0,
            "steps": request.steps or STEPS,
            "threshold": THRESHOLD,
            "layout": "through-time",
            "together": SEEDS,
        }
        return {
            (length, block): self.arm(
                request,
                block,
                "dense",
                family_options={"activation": "tanh"},
                depth=length,
                nominal_width=WIDTH,
                batch_size=BATCH,
                dataset="adding",
                seq_len=length,
                recipe=recipe,
            )
            for length, block in itertools.product((SHORT, LONG), BLOCKS)
        }

    def claims(self, request: Request) -> Sequence[Claim]:
        common: dict[str, Any] = {
            "source": LECTURE,
            "unit": "%",
            "statistic": Statistic.SHARE,
            "least": self.least_seeds,
            **self.design(request),
        }
        steps = f"{count(request.steps or STEPS)} steps"
        learns = f"share of seeds whose final loss is a tenth of chance's or less at T = {LONG}, after {steps}"
        return [
            Claim(
                statement="long ranges need shortcuts: the plain recurrence does not learn them",
                evidence=Evidence.SECONDARY,
                quantity=f"{learns}, plain",
                region=Region(most=MOST, closed=True),
                refuted=(Region(least=HALF, closed=True),),
                guard=f"if plain misses T = {SHORT} at more than half of its seeds, or no recurrence learns T = {LONG}",
                observe=_plain_misses,
                effect=0.0,
                **common,
            ),
            *(
                Claim(
                    statement=f"with a {name} shortcut the recurrence learns long ranges",
                    evidence=Evidence.OURS,  # the lecture says that they need one, not that one is enough
                    quantity=f"{learns}, {block}",
                    region=Region(least=LEAST, closed=True),
                    refuted=(Region(most=HALF),),
                    guard=f"if it misses T = {SHORT} at more than half of its seeds",
                    observe=partial(_learns, block),
                    effect=100.0,
                    **common,
                )
                for block, name in SHORTCUTS.items()
            ),
        ]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        runs = self.runs(rows, request)
        return runs, [_shown(runs, request.steps or STEPS)] if len(runs) else [], []


def _learn(runs: pd.DataFrame, block: str, length: int) -> tuple[int, int]:
    """How many of a recurrence's runs learn a range, and of how many."""
    own = of_arm(runs, block=block, length=length)
    return int(own["success"].sum()), len(own)


def _share(runs: pd.DataFrame, block: str) -> Quantity:
    return Share.of_runs(f"{block}, T = {LONG}", *_learn(runs, block, LONG))


def _misses_short(runs: pd.DataFrame, block: str) -> str:
    """The reason why a long range decides nothing: the short one is missed too."""
    k, n = _learn(runs, block, SHORT)
    return "" if n and 2 * k >= n else f"{block} is untrained: it learns T = {SHORT} at {k} of {n} seeds"


def _plain_misses(runs: pd.DataFrame, _: float) -> Observation:
    plain, *others = (_share(runs, block) for block in BLOCKS)
    if not plain.n:
        return Observation()
    nobody = not any(one.value > 0 for one in (plain, *others))
    return Observation(
        decisive=[plain],
        reported=others,
        untestable=_misses_short(runs, "plain") or ("the budget is too small for any recurrence" if nobody else ""),
    )


def _learns(block: str, runs: pd.DataFrame, _: float) -> Observation:
    share = _share(runs, block)
    return Observation(decisive=[share], untestable=_misses_short(runs, block))


def _shown(runs: pd.DataFrame, steps: int) -> column.TextTable:
    def further(own: pd.DataFrame) -> dict[str, Any]:
        return {
            "succeeded": f"{int(own['success'].sum())} of {len(own)}",
            "steps": steps_text(list(own["steps_to_threshold"].fillna(math.inf))),
            "median": own["final_loss"].median(),
        }

    table = table_by(RecurrenceThroughTime.by, runs, further)
    table["equation"] = table["block"].map(BLOCKS)
    shown = [
        column.whole("length", "T"),
        *columns("block"),
        column.words("equation", "h_t, z = (h_(t−1), x_t)"),
        column.words("succeeded", "seeds that learn it"),
        column.words("steps", "steps to a tenth of chance", "range over seeds"),
        column.number("median", "median final loss", "1", "mean squared error; chance is 1/6"),
        *columns("rate", "edge", "params"),
    ]
    note = (
        f"{count(steps)} steps in batches of {BATCH}. A run succeeds if its final loss is a tenth of chance's or less."
    )
    return column.shown("recurrence", "Adding by recurrence through time", table, shown, note=note)

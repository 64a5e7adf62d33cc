"""Long ranges through time: plain, residual and gated recurrence on the adding problem, at a short and a long range."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from highway_bench.plan.settings import FIRST_ADAMW_RATES
from highway_bench.report import columns as column
from highway_bench.report.format import count
from highway_bench.studies.decide.candidate import Candidate
from highway_bench.studies.reproduce.arms import RATE_COLUMNS, TunedReproduction, run_record
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
SHORTCUTS = tuple(block for block in BLOCKS if block != "plain")
LECTURE = "a lecture on highway networks"

# Shares of seeds, in percent
MOST, LEAST, HALF = 10.0, 90.0, 50.0

CountsByLength = Mapping[tuple[int, str], tuple[int, int]]
"""Runs that succeed, and runs, by length and block."""


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
    # Versions 1 and 2 had rates whose best was the lowest or highest. In version 3 a single run chose the rate
    version = RuleVersion(4, "2026-11-28", seen=52)
    not_attempted = (
        NotAttempted(
            "LSTM and GRU, whose gates read more than one state", "arXiv:1603.03116", "they are no blocks here"
        ),
    )

    def arms(self, request: Request) -> dict[Hashable, Candidate]:
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
                block,
                "dense",
                self.seeds(request),
                family_options={"activation": "tanh"},
                depth=length,
                nominal_width=WIDTH,
                batch_size=BATCH,
                dataset="adding",
                seq_len=length,
                recipe=recipe,
                device=request.device,
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
                for block, name in zip(SHORTCUTS, ("residual", "gated"), strict=True)
            ),
        ]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        ended = self.ended_runs(rows, request, lambda run: (run["seq_len"], run["block"]))
        arms = {
            (length, block): ended[(ended["seq_len"] == length) & (ended["block"] == block)]
            for length, block in itertools.product((SHORT, LONG), BLOCKS)
        }
        successes = {arm: (int(own["success"].sum()), len(own)) for arm, own in arms.items()}
        return successes, [_shown(arms, request.steps or STEPS)] if len(ended) else [], []


def _share(successes: CountsByLength, block: str) -> Quantity:
    return Share.of_runs(f"{block}, T = {LONG}", *successes[LONG, block])


def _misses_short(successes: CountsByLength, block: str) -> str:
    """The reason why a long range decides nothing: the short one is missed too."""
    k, n = successes[SHORT, block]
    return "" if n and 2 * k >= n else f"{block} is untrained: it learns T = {SHORT} at {k} of {n} seeds"


def _plain_misses(successes: CountsByLength, _: float) -> Observation:
    shares = {block: _share(successes, block) for block in BLOCKS}
    plain = shares.pop("plain")
    if not plain.n:
        return Observation()
    nobody = not any(one.value > 0 for one in (plain, *shares.values()))
    return Observation(
        decisive=[plain],
        reported=list(shares.values()),
        untestable=_misses_short(successes, "plain")
        or ("the budget is too small for any recurrence" if nobody else ""),
    )


def _learns(block: str, successes: CountsByLength, _: float) -> Observation:
    share = _share(successes, block)
    return Observation(decisive=[share] if share.n else [], untestable=_misses_short(successes, block))


def _shown(arms: Mapping[tuple[int, str], pd.DataFrame], steps: int) -> column.TextTable:
    records = [
        {
            "length": length,
            "block": block,
            "equation": BLOCKS[block],
            "succeeded": f"{int(own['success'].sum())} of {len(own)}",
            "steps": steps_text(list(own["steps_to_threshold"].fillna(float("inf")))),
            "loss": own["final_loss"].median(),
            **run_record(own),
        }
        for (length, block), own in arms.items()
        if len(own)
    ]
    columns = [
        column.whole("length", "T"),
        column.words("block", "block"),
        column.words("equation", "h_t, z = (h_(t−1), x_t)"),
        column.words("succeeded", "seeds that learn it"),
        column.words("steps", "steps to a tenth of chance", "range over seeds"),
        column.number("loss", "median final loss", "1", "mean squared error; chance is 1/6"),
        *RATE_COLUMNS,
        column.whole("params", "parameters"),
    ]
    note = (
        f"{count(steps)} steps in batches of {BATCH}. A run succeeds if its final loss is a tenth of chance's or less."
    )
    return column.shown("recurrence", "Adding by recurrence through time", pd.DataFrame(records), columns, note=note)

"""The runs of the finals: of which connections, at which learning rates, with how many seeds.

A finalist trains with fresh seeds at its best rate of the last rung. Each rate had only one seed or two there, so the
other one may be better. Therefore a finalist that is behind the best, or that diverged at a seed, trains again at the
other rate with the same seeds, if that may be better and there is time. Its better rate counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, Final

from highway_bench.cell import Cell
from highway_bench.report.format import counted
from highway_bench.studies.advice.about import no_time_notes, other_rate_note
from highway_bench.studies.advice.budget import FINALS, Pace, core_seconds, seeds_that_fit
from highway_bench.studies.advice.connections import Connection
from highway_bench.studies.advice.finals import judged
from highway_bench.studies.advice.fit import Fit
from highway_bench.studies.advice.halving import Halving, RateLoss, order_of
from highway_bench.studies.advice.measured import MeasuredCells
from highway_bench.studies.advice.request import AdviceRequest
from highway_bench.studies.advice.stored import Decisions

LEAST_FINALS: Final = 0.2  # share of the time that the finals have, even where the rungs took longer than predicted
WHOLE: Final = 0.97  # share of the time at which the finals are to end

FinalCells = dict[Connection, list[Cell]]


@dataclass(frozen=True)
class FinalRuns:
    """The finals after ``halving``, in an advice that ``began`` at this time of the monotonic clock."""

    request: AdviceRequest
    fit: Fit
    measured: MeasuredCells
    decisions: Decisions
    halving: Halving
    pace: Pace
    began: float

    def measure(self) -> tuple[FinalCells, list[str]]:
        """The cells of each finalist at the rate that counts, in the order of the seeds; and sentences on other
        rates."""
        decided = self.decisions.once("finals", self.decide)
        rates = {Connection(*one): rate for one, rate in zip(decided["connections"], decided["rates"], strict=True)}
        runs = first = self.at_rates(rates, decided["seeds"])
        again: FinalCells = {}
        while True:
            others = self.decisions.once(f"other rates after {len(again)}", partial(self.decide_others, runs, again))
            if not others["rates"]:
                break
            rates = {Connection(*one): rate for one, rate in others["rates"]}
            again |= self.at_rates(rates, decided["seeds"])
            runs = first | {one: min(first[one], again[one], key=self.standing) for one in again}
        changed = [one for one in again if runs[one] != first[one]]
        notes = [other_rate_note(one, first[one], runs[one], self.diverged(first[one])) for one in changed]
        return runs, notes + no_time_notes([Connection(*one) for one in others["no_time"]])

    def decide(self) -> dict[str, Any]:
        """Who is in the finals, at which learning rate, and with how many seeds."""
        finalists, rung = self.halving.finalists(), self.halving.plan.rungs - 1
        rates = [self.halving.best(rung, one)[0] for one in finalists]
        seconds = [self.run_seconds(one, rate) for one, rate in zip(finalists, rates, strict=True)]
        whole = 60 * self.request.minutes
        share = max(whole * LEAST_FINALS, min(whole * FINALS, self.seconds_left()))
        count, seeds = seeds_that_fit(share, self.fit.workers, seconds, self.pace.start)
        return {"connections": [list(one) for one in finalists[:count]], "rates": rates[:count], "seeds": seeds}

    def decide_others(self, runs: FinalCells, again: FinalCells) -> dict[str, Any]:
        """The finalists that train at another rate, with this rate, and those for which there is no time.

        ``again`` have trained so before. The one of the lowest loss in the last rung comes first.
        """
        leaders = judged({one: self.losses(cells) for one, cells in runs.items()}).leaders
        behind = [one for one in runs if one not in leaders and one not in again]
        others = {one: other for one in behind if (other := self.perhaps_better(one, runs[one])) is not None}
        left = core_seconds(self.seconds_left(), self.fit.workers, self.pace.start)
        decided: dict[str, Any] = {"rates": [], "no_time": []}
        for one, (rate, _) in sorted(others.items(), key=lambda other: other[1].loss):
            needed = len(runs[one]) * self.run_seconds(one, rate)
            if needed <= left:
                left -= needed
                decided["rates"].append([list(one), rate])
            else:
                decided["no_time"].append(list(one))
        return decided

    def perhaps_better(self, connection: Connection, cells: Sequence[Cell]) -> RateLoss | None:
        """The other rate of the last rung, if its loss there is no higher than that of every run in ``cells``."""
        other = self.halving.other(connection)
        if other is None or any(cell in self.measured.failures for cell in cells):
            return None
        return other if other.loss <= max(map(order_of, self.losses(cells))) else None

    def at_rates(self, rates: Mapping[Connection, float], seeds: int) -> FinalCells:
        """Measure the finals of each connection at its rate, with as many fresh ``seeds``."""
        steps = self.halving.plan.ladder[-1]
        runs = {
            one: [self.request.run(one, steps, rate, seed, evaluate="end") for seed in self.request.final_seeds(seeds)]
            for one, rate in rates.items()
        }
        cells = [cell for together in zip(*runs.values(), strict=True) for cell in together]
        self.measured.measure(cells, f"finals: {counted(len(runs), 'connection')}, {steps:,} steps each")
        return runs

    def losses(self, cells: Sequence[Cell]) -> list[float | None]:
        """The final losses, in the order of the seeds; ``None`` where a run has none."""
        return [self.measured.value(cell, "final_loss") for cell in cells]

    def standing(self, cells: Sequence[Cell]) -> tuple[int, float]:
        """How good the runs of one rate are, the lower the better: how many have no final loss, and the mean of the
        others."""
        finite = [loss for loss in self.losses(cells) if loss is not None]
        return len(cells) - len(finite), fmean(finite or [math.inf])

    def diverged(self, cells: Sequence[Cell]) -> int:
        """How many runs have no final loss, and did not fail."""
        losses = zip(cells, self.losses(cells), strict=True)
        return sum(loss is None and cell not in self.measured.failures for cell, loss in losses)

    def seconds_left(self) -> float:
        """The seconds until the finals are to end."""
        return 60 * self.request.minutes * WHOLE - (time.monotonic() - self.began)

    def run_seconds(self, connection: Connection, rate: float) -> float:
        """The predicted seconds of a run of the finals."""
        cell, *_ = self.halving.cells(self.halving.plan.rungs - 1, connection, rate)
        step = self.measured.value(cell, "step_seconds") or self.pace.step
        return step * (self.halving.plan.ladder[-1] + self.evaluation_steps()) + self.pace.setup

    def evaluation_steps(self) -> float:
        """What testing a network takes, in training steps: a forward pass is a third of one."""
        data = self.request.data.dataset.load(seed=0)
        items = min(len(data.train.inputs), 2_000) + len(data.test.inputs)
        return items / self.request.batch_size / 3

"""Finals: of which connections, at which learning rates, with how many seeds; and which of them may be the best.

A finalist trains with fresh seeds at its best rate of the last rung. Each rate had only one seed or two there, so the
other one may be better. Therefore a finalist that is behind the best, or that diverged at a seed, trains again at the
other rate with the same seeds, if that may be better and there is time. Its better rate counts.

The best has the lowest mean. Every other is compared with it by a paired t test of log losses, corrected by Holm. It is
a leader unless it is worse, and by more than ``EQUAL``. A connection that diverged at a seed is none. If a loss of the
user's own is 0 or negative, all are compared without logarithms, as multiples of the best's mean size. The project's
``compare`` has no word for fewer than five seeds, and the minutes of an advice may allow three.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from statistics import fmean
from typing import Any, Final, Generic

import numpy as np

from highway_bench.cell import Cell
from highway_bench.measure.paired import Contrast, Name, contrasts, ranked
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.report.format import counted, listed
from highway_bench.studies.advice.budget import FINALS, Pace, core_seconds, seeds_that_fit
from highway_bench.studies.advice.halving import Halving, RateLoss, size_of
from highway_bench.studies.advice.measured import Decisions
from highway_bench.studies.advice.request import Connection

ALPHA: Final = 0.02
"""Of all comparisons with the best together. It is below the usual 0.05, because the best is chosen by the same losses,
and because a wrong "take" costs the user more than an "undecided"."""
EQUAL: Final = 0.01
"""Leaders whose interval of the relative difference lies within ± this are equal."""
MOST_SEEDS: Final = 100
"""More seeds than this are not named as the number that would decide."""
MOST: Final = 1000.0
"""Relative differences are cut here: two seeds that scatter widely give an interval that no number holds."""
LEAST_FINALS: Final = 0.2  # share of the time that the finals have, even where the rungs took longer than predicted
WHOLE: Final = 0.97  # share of the time at which the finals are to end

FinalCells = dict[Connection, list[Cell]]


class QualityVerdict(StrEnum):
    """What the finals decide."""

    TAKE = "take"
    EQUAL = "equal"
    UNDECIDED = "undecided"
    NONE = "none"


@dataclass(frozen=True)
class GapToBest(Generic[Name]):
    """How far ``name`` is behind the best: the mean relative ``difference`` of losses (0.12 is 12 % above the best)
    with its interval at 1 − ``ALPHA``/m for m comparisons, Holm's ``p``, and the seeds that it would need."""

    name: Name
    difference: IntervalEstimate
    p: float
    needed: int | None

    @property
    def worse(self) -> bool:
        """Whether it is no leader."""
        return self.p < ALPHA and not self.equal

    @property
    def equal(self) -> bool:
        """Whether it is as good as the best, within ± ``EQUAL``."""
        return self.difference.low >= -EQUAL and self.difference.high <= EQUAL

    @property
    def relation(self) -> str:
        """Its place next to the best, in a word."""
        return "behind" if self.worse else "equal" if self.equal else "tied"


@dataclass(frozen=True)
class JudgedFinals(Generic[Name]):
    """The verdict on finalists: the ``best``, the ``leaders`` (the best among them, in the order of their losses), each
    other's distance, and the number of ``seeds`` and of those that would be ``needed``."""

    verdict: QualityVerdict
    leaders: tuple[Name, ...]
    behind: tuple[GapToBest[Name], ...]
    seeds: int
    needed: int | None = None

    @property
    def best(self) -> Name | None:
        """The finalist of lowest mean loss; ``None`` where every one diverged."""
        return self.leaders[0] if self.leaders else None


def judged(losses: Mapping[Name, Sequence[float | None]], unfit: Collection[Name] = ()) -> JudgedFinals[Name]:
    """The verdict on the final ``losses`` of each finalist, one a seed in the order of seeds; ``None`` diverged.

    ``unfit`` are finalists that are none to use, whatever their losses: they are neither leaders nor behind. The others
    are corrected for as many comparisons as if these were compared too.
    """
    seeds = max(map(len, losses.values()), default=0)
    whole = {name: [loss for loss in values if loss is not None] for name, values in losses.items()}
    whole = {name: values for name, values in whole.items() if len(values) == seeds > 0}
    logs = all(loss > 0 for values in whole.values() for loss in values)
    sizes = {name: {n: math.log(one) if logs else one for n, one in enumerate(each)} for name, each in whole.items()}
    if not sizes:
        return JudgedFinals(QualityVerdict.NONE, (), (), seeds)
    best = ranked({name: values for name, values in sizes.items() if name not in unfit} or sizes)[0]
    if not logs:
        unit = fmean(map(abs, sizes[best].values())) or 1.0
        sizes = {name: {n: one / unit for n, one in by_seed.items()} for name, by_seed in sizes.items()}
    others = [name for name in ranked(sizes) if name != best]
    alpha = ALPHA / max(1, len(others))
    found = contrasts(sizes, best, 1 - alpha)
    behind = tuple(gap_to_best(name, found[name], alpha, logs) for name in others if name not in unfit)
    tied = [one for one in behind if not one.worse]
    undecided = [one.needed for one in tied if not one.equal]
    verdict = QualityVerdict.UNDECIDED if undecided else QualityVerdict.EQUAL if tied else QualityVerdict.TAKE
    known = [one for one in undecided if one is not None]
    needed = max(known) if 0 < len(known) == len(undecided) else None
    return JudgedFinals(verdict, (best, *(one.name for one in tied)), behind, seeds, needed)


def gap_to_best(name: Name, contrast: Contrast, alpha: float, logs: bool) -> GapToBest[Name]:
    """The distance of ``name`` from the best by a contrast of logarithms or of multiples; ``alpha`` is that of one
    comparison."""

    def relative(size: float) -> float:
        above = math.expm1(min(size, 700.0)) if logs else size  # e to a larger power is no number
        return float(np.clip(above, -MOST, MOST))

    mean, needed = contrast.difference, contrast.pairs_needed(alpha)
    difference = IntervalEstimate(relative(mean.value), relative(mean.low), relative(mean.high), mean.n)
    return GapToBest(name, difference, contrast.p, int(needed) if needed <= MOST_SEEDS else None)


@dataclass(frozen=True)
class FinalRuns:
    """The finals after ``halving``, in an advice that ``began`` at this time of the monotonic clock."""

    halving: Halving
    workers: int
    decisions: Decisions
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
        notes = [self.other_rate_note(one, first[one], runs[one]) for one in again if runs[one] != first[one]]
        late = [str(Connection(*one)) for one in others["no_time"]]
        if late:
            each = " of each" * (len(late) > 1)
            notes.append(
                f"There was no time to train {listed(late)} with the next best learning rate{each}, which may be the "
                "better one."
            )
        return runs, notes

    def decide(self) -> dict[str, Any]:
        """Who is in the finals, at which learning rate, and with how many seeds."""
        finalists = self.halving.finalists()
        rates = [self.halving.best(self.halving.last, one).rate for one in finalists]
        seconds = [self.run_seconds(one, rate) for one, rate in zip(finalists, rates, strict=True)]
        whole = 60 * self.halving.request.minutes
        share = max(whole * LEAST_FINALS, min(whole * FINALS, self.seconds_left()))
        count, seeds = seeds_that_fit(share, self.workers, seconds, self.pace.start)
        return {"connections": [list(one) for one in finalists[:count]], "rates": rates[:count], "seeds": seeds}

    def decide_others(self, runs: FinalCells, again: FinalCells) -> dict[str, Any]:
        """The finalists that train at another rate, with this rate, and those for which there is no time.

        ``again`` have trained so before. The one of the lowest loss in the last rung comes first.
        """
        leaders = judged({one: self.halving.measured.losses(cells) for one, cells in runs.items()}).leaders
        behind = [one for one in runs if one not in leaders and one not in again]
        others = {one: other for one in behind if (other := self.perhaps_better(one, runs[one])) is not None}
        left = core_seconds(self.seconds_left(), self.workers, self.pace.start)
        decided: dict[str, Any] = {"rates": [], "no_time": []}
        for one, (_, rate) in sorted(others.items(), key=lambda other: other[1].loss):
            needed = len(runs[one]) * self.run_seconds(one, rate)
            if needed <= left:
                left -= needed
                decided["rates"].append([list(one), rate])
            else:
                decided["no_time"].append(list(one))
        return decided

    def perhaps_better(self, connection: Connection, cells: Sequence[Cell]) -> RateLoss | None:
        """The other rate of the last rung, if its loss there is no higher than that of every run in ``cells``."""
        other, measured = self.halving.other(connection), self.halving.measured
        if other is None or any(cell in measured.failures for cell in cells):
            return None
        return other if other.loss <= max(map(size_of, measured.losses(cells))) else None

    def at_rates(self, rates: Mapping[Connection, float], seeds: int) -> FinalCells:
        """Measure the finals of each connection at its rate, with as many fresh ``seeds``."""
        steps, request = self.halving.plan.ladder[-1], self.halving.request
        runs = {
            one: [request.run(one, steps, rate, seed, evaluate="end") for seed in request.final_seeds(seeds)]
            for one, rate in rates.items()
        }
        cells = [cell for together in zip(*runs.values(), strict=True) for cell in together]
        self.halving.measured.measure(cells, f"finals: {counted(len(runs), 'connection')}, {steps:,} steps each")
        return runs

    def standing(self, cells: Sequence[Cell]) -> tuple[int, float]:
        """How good the runs of one rate are, the lower the better: how many have no final loss, and the mean of the
        others."""
        ended = self.halving.measured.values(cells, "final_loss")
        return len(cells) - len(ended), fmean(ended or [math.inf])

    def other_rate_note(self, one: Connection, runs: Sequence[Cell], again: Sequence[Cell]) -> str:
        """A sentence on a finalist that is judged by ``again``, and not by ``runs``."""
        measured = self.halving.measured
        losses = zip(runs, measured.losses(runs), strict=True)
        diverged = sum(loss is None and cell not in measured.failures for cell, loss in losses)
        worse = f"diverged at {diverged} of {len(runs)} seeds" if diverged else "had a higher loss"
        before, now = (f"{cells[0].recipe['rate']:.3g}" for cells in (runs, again))
        return (
            f"{one} is judged with the learning rate {now}: with {before}, the better one in the last rung, it {worse}."
        )

    def seconds_left(self) -> float:
        """The seconds until the finals are to end."""
        return 60 * self.halving.request.minutes * WHOLE - (time.monotonic() - self.began)

    def run_seconds(self, connection: Connection, rate: float) -> float:
        """The predicted seconds of a run of the finals. To test a network, a forward pass is a third of a step."""
        cell, *_ = self.halving.cells(self.halving.last, connection, rate)
        step = self.halving.measured.value(cell, "step_seconds") or self.pace.step
        data = self.halving.request.data.dataset.load(seed=0)
        tested = min(len(data.train.inputs), 2_000) + len(data.test.inputs)
        return step * (self.halving.plan.ladder[-1] + tested / cell.batch_size / 3) + self.pace.setup

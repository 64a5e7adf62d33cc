"""Answer: what was measured of each connection, and three answers that are judged apart: does it train, what does it
cost, how good is it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import pandas as pd

from highway_bench.interactive.measured import ShowsTables
from highway_bench.measure.paired import UNKNOWN
from highway_bench.report.choice.columns import of_interval
from highway_bench.report.format import counted, listed, quantity, signed, three
from highway_bench.studies.advice.about import building
from highway_bench.studies.advice.before_training import Cost
from highway_bench.studies.advice.finals import ALPHA, MOST, MOST_SEEDS, GapToBest, JudgedFinals, QualityVerdict
from highway_bench.studies.advice.request import Connection
from highway_bench.studies.decide.candidate import REFERENCE
from highway_bench.terminal import finite

LEARNT: Final = 0.1
"""A connection learns if its mean final loss is at least this share below that of the best constant prediction."""
MOST_NAMED: Final = 8
"""Of more connections in a list, some are named and the others counted."""
CONFIDENCE: Final = f"{100 * (1 - ALPHA):g} %"
PLAIN: Final = ("width", "steps", "rate", "loss", "runs", "succeeded", "test_accuracy", "reason", "at_start")
"""Of a connection's result, what JSON takes as it is."""
SHOWN: Final = {
    "connection": "connection",
    "width": "width",
    "learning": "result",
    "steps": "steps",
    "rate": "lr",
    "loss": "loss",
    "step_ratio": "step ratio",
    "step_ratio_low": "low",
    "step_ratio_high": "high",
}
"""The columns of the table that an advice shows itself by, with their headings."""


class Learning(StrEnum):
    """Whether a connection trains."""

    TRAINS = "trains"
    LEARNS = "learns"
    UNSTABLE = "unstable"
    FAILS = "does not learn"
    DIVERGES = "diverges"
    ERROR = "failed"
    LEFT_OUT = "left out"


def learning_of(losses: Sequence[float | None], succeeded: int, chance: float) -> Learning:
    """The word for the final ``losses`` of a connection's longest runs, of which so many ``succeeded``.

    ``chance`` is the loss of the best constant prediction, above 0.
    """
    ended = [loss for loss in losses if loss is not None]
    if not ended:
        return Learning.DIVERGES
    if len(ended) < len(losses):
        return Learning.UNSTABLE
    if succeeded == len(losses):
        return Learning.TRAINS
    learnt = math.fsum(ended) / len(ended) <= (1 - LEARNT) * chance
    return Learning.LEARNS if learnt else Learning.FAILS


@dataclass(frozen=True)
class ConnectionResult:
    """What was measured of one connection.

    ``steps`` are those of its longest runs, with the learning ``rate`` of the lowest ``loss`` (a mean over seeds in the
    finals, ``None`` where it diverged). ``runs`` and ``succeeded`` count these runs. ``test_accuracy`` is a mean over
    the finals, ``reason`` an error, or why it was left out. ``at_start`` says whether signal and gradient are in range
    before training, if that was measured.
    """

    connection: Connection
    width: int
    learning: Learning
    cost: Cost
    steps: int = 0
    rate: float | None = None
    loss: float | None = None
    runs: int = 0
    succeeded: int = 0
    test_accuracy: float | None = None
    reason: str | None = None
    at_start: str | None = None

    @property
    def learns(self) -> bool:
        """Whether it learns at every seed."""
        return self.learning in (Learning.TRAINS, Learning.LEARNS)


def unfit(finalists: Iterable[Connection], results: Iterable[ConnectionResult]) -> set[Connection]:
    """The finalists that do not learn, where others do: none to use, however far their losses scatter."""
    finals = [one for one in results if one.connection in finalists]
    learns = any(one.learns for one in finals)
    return {one.connection for one in finals if learns and one.learning == Learning.FAILS}


@dataclass(frozen=True, repr=False)
class Advice(ShowsTables):
    """The advice for one layer at one depth.

    ``about`` has the request in plain values, ``results`` what was measured of each connection, ``quality`` the verdict
    of the finals. ``failed`` is the number of measurements without a result.
    """

    about: Mapping[str, Any]
    results: Sequence[ConnectionResult]
    quality: JudgedFinals[Connection]
    finalists: Sequence[Connection]
    ladder: Sequence[int]
    timed_depth: int
    notes: Sequence[str]
    store: Path
    failed: int = 0
    page: Path | None = None

    @property
    def verdict(self) -> QualityVerdict:
        """``take``, ``equal``, ``undecided``, or ``none`` where no finalist learns."""
        best = self.quality.best
        return self.quality.verdict if best is not None and self.result(best).learns else QualityVerdict.NONE

    @property
    def use(self) -> tuple[Connection, ...]:
        """The connections to use: the leaders, the lowest loss first; none where the verdict is ``none``."""
        return () if self.verdict == QualityVerdict.NONE else self.quality.leaders

    @property
    def cheapest(self) -> Connection | None:
        """The leader whose step is the shortest; ``None`` unless the ratios of all leaders are decided."""
        decided = all(self.result(one).cost.decided for one in self.use)
        return min(self.use, key=lambda one: self.result(one).cost.step.value) if self.use and decided else None

    @property
    def cheaper_surely(self) -> bool:
        """Whether the interval of the cheapest leader's step lies below those of all other leaders."""
        cheapest = self.cheapest
        if cheapest is None:
            return False
        high = self.result(cheapest).cost.step.high
        others = [self.result(one).cost.step for one in self.use if one.block != cheapest.block]
        return bool(others) and all(high < one.low for one in others)

    @property
    def exit_status(self) -> int:
        """1 if a measurement failed, else 0."""
        return int(self.failed > 0)

    @property
    def headline(self) -> str:
        """The answer, and how many connections were left out of it."""
        left = sum(one.learning == Learning.LEFT_OUT for one in self.results)
        if not left:
            return self.decision
        count = f"{left} of {len(self.results)} connections and starts {'was' if left == 1 else 'were'} left out"
        return f"{self.decision} {count}: a better one may be among them."

    @property
    def decision(self) -> str:
        """What the finals decide, in a sentence or two."""
        depth, steps = self.about["depth"], self.ladder[-1]
        names = listed([str(one) for one in self.use])
        if self.quality.best is None:
            return f"No connection to take at depth {depth}: each one in the finals diverged or failed at a seed."
        if self.verdict == QualityVerdict.NONE:
            if lost := [str(one) for one in self.ranked if self.result(one).loss is None]:
                return (
                    f"No connection to take at depth {depth}: {listed(lost)} diverged or failed at a seed, and no "
                    f"other finalist learns within {steps:,} steps."
                )
            minutes = math.ceil(self.about["minutes"] * max(2, self.about["usual_steps"] / steps))
            return (
                f"No connection that was tried learns at depth {depth} within {steps:,} steps: try "
                f"--minutes {minutes}, or fewer connections (--block)."
            )
        if len(self.finalists) < 2:
            alone = sum(one.steps > 0 for one in self.results) < 2
            return (
                f"Only {names} was trained." if alone else f"Take {names}: the others that went on diverged or failed."
            )
        if self.verdict == QualityVerdict.TAKE:
            return f"Take {names}."
        if self.verdict == QualityVerdict.EQUAL:
            cost = f"take the cheaper, {self.cheapest}" if self.cheaper_surely else "their step times do not decide"
            return f"{names} are equal: {cost}."
        needed = self.quality.needed
        seeds = f"about {needed} seeds" if needed else f"more than {MOST_SEEDS} seeds"
        lowest = ", which has the lowest loss too" if self.cheapest == self.quality.best else ""
        cheaper = f" The cheapest of them is {self.cheapest}{lowest}." if self.cheaper_surely else ""
        return f"Undecided between {names}: it would need {seeds}, not {self.quality.seeds}.{cheaper}"

    @property
    def ranked(self) -> list[Connection]:
        """The finalists, the lowest loss first; those that diverged or failed at a seed last."""
        judged = [one for one in (self.quality.best, *(one.name for one in self.quality.behind)) if one is not None]
        return [*judged, *(one for one in self.finalists if one not in judged)]

    def result(self, connection: Connection) -> ConnectionResult:
        """What was measured of ``connection``."""
        return next(one for one in self.results if one.connection == connection)

    def behind(self, connection: Connection) -> GapToBest[Connection] | None:
        """How far ``connection`` is behind the best; ``None`` for the best, and for one that is not in the finals."""
        return next((one for one in self.quality.behind if one.name == connection), None)

    def lines(self) -> list[str]:
        """The answer, one line for each of the three questions, and how the connections to use are built."""
        built = [building(self.about["layer"], one, self.result(one).rate) for one in self.use]
        how = [f"How is it built? {'. '.join(built)}. L = {self.about['joins']:,} connections."] if built else []
        return [self.headline, self.training_line(), self.cost_line(), self.quality_line(), *how]

    def headlines(self) -> list[str]:
        return self.lines()

    def tables(self) -> dict[str, pd.DataFrame]:
        """The connections, what trained longest and then the lowest loss first."""
        rows = [{"connection": str(one.connection), **self._plain(one)} for one in self.results]
        return {"connections": pd.DataFrame(rows)[[*SHOWN]].rename(columns=SHOWN)}

    def training_line(self) -> str:
        """Does it train?"""
        named: dict[str, list[str]] = {}
        for one in sorted(self.results, key=lambda one: list(Learning).index(one.learning)):
            within = f" within {one.steps:,} steps" if one.learning == Learning.FAILS else ""
            named.setdefault(f"{one.learning}{within}", []).append(str(one.connection))
        parts = [f"{words}: {listed(first_of(names, MOST_NAMED))}" for words, names in named.items()]
        return f"Does it train? {'; '.join(parts)}."

    def cost_line(self) -> str:
        """What does it cost?"""
        parts = []
        for block in dict.fromkeys(one.block for one in self.use or self.ranked):
            cost = next(one.cost for one in self.results if one.connection.block == block)
            what = f"step {cost.ratio}"
            if block == REFERENCE:
                what = "the unit"
            elif math.isfinite(cost.step.low):
                what = f"step time {cost.ratio} × {REFERENCE}'s"
            elif not math.isnan(cost.step.value):
                what = f"step timed in {cost.ratio} (no interval)"
            saved = "" if math.isnan(cost.saved) else f", {quantity(cost.saved, 'B')} saved a layer"
            parts.append(f"{block}: {what}{saved}")
        return f"What does it cost? {'; '.join(parts) or 'not timed'}."

    def quality_line(self) -> str:
        """How good is it?"""
        best = self.quality.best
        if self.verdict == QualityVerdict.NONE or best is None:
            return "How good is it? There is nothing to compare."
        parts = [f"{best}: final loss {three(self.result(best).loss)}"]
        parts += [f"{one.name}: {in_percent(one)}, {one.relation}" for one in self.quality.behind]
        compared = f"{counted(self.quality.seeds, 'seed')} of {self.ladder[-1]:,} steps, intervals of {CONFIDENCE}"
        return f"How good is it? {'; '.join(parts)} ({compared})."

    def plain(self) -> dict[str, Any]:
        """The advice as values that JSON knows. Differences of losses are relative: 0.12 is 12 % above the best."""
        return {
            **self.about,
            "answer": self.headline,
            "verdict": str(self.verdict),
            "use": [one._asdict() for one in self.use],
            "cheapest": self.cheapest._asdict() if self.cheapest else None,
            "seeds": self.quality.seeds,
            "seeds_needed": self.quality.needed if self.verdict == QualityVerdict.UNDECIDED else None,
            "steps": list(self.ladder),
            "timed_depth": self.timed_depth,
            "connections": [finite(self._plain(one)) for one in self.results],
            "notes": list(self.notes),
            "store": str(self.store),
            "page": None if self.page is None else str(self.page),
        }

    def _plain(self, one: ConnectionResult) -> dict[str, Any]:
        gap = self.behind(one.connection)
        return {
            **one.connection._asdict(),
            **{name: getattr(one, name) for name in PLAIN},
            "learning": str(one.learning),
            **of_interval("step_ratio", one.cost.step),
            "step_ratio_decided": one.cost.decided,
            "saved_per_layer": one.cost.saved,
            "leader": one.connection in self.use,
            **of_interval("behind", UNKNOWN if gap is None else gap.difference),
        }


def first_of(names: Sequence[str], most: int) -> list[str]:
    """``names``; if there are more than ``most``, fewer of them and the number of the others."""
    return list(names) if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} others"]


def in_percent(one: GapToBest[Connection]) -> str:
    """A relative difference with its interval: +12 % [+3, +21]."""

    def hundredths(difference: float) -> str:
        if abs(difference) >= MOST:
            return f"> +{100 * MOST:,.0f}" if difference > 0 else f"< −{100 * MOST:,.0f}"
        return signed(100 * difference, "+.3g")

    gap = one.difference
    bounds = f"{hundredths(gap.low)}, {hundredths(gap.high)}" if math.isfinite(gap.low) else "one seed"
    return f"{hundredths(gap.value)} % [{bounds}]"


def ordered(results: Iterable[ConnectionResult]) -> list[ConnectionResult]:
    """Results with what trained longest, and then the lowest loss, first."""
    words = list(Learning)
    return sorted(
        results,
        key=lambda one: (
            -one.steps,
            -one.runs,
            math.inf if one.loss is None else one.loss,
            words.index(one.learning),
        ),
    )

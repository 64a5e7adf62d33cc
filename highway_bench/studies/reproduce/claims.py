"""Claims: what a publication states, the rule that decides it, and the verdict on what was measured.

A ``Claim`` is fixed before anything is run. It names the quantity that decides, as a number with an interval, and the
region in which the published statement puts that number. The printed rule, the power of a design and the verdict all
come from the same claim:

- *reproduced*: every interval lies in the claim's region;
- *contradicted*: one interval lies wholly outside of it, or in a region of its own (``refuted``);
- *suggestive*, *suggestive against*: as these two, but so few runs fall into such an order too often by chance;
- *undecided*: an interval reaches over a bound, or lies between the two regions. A count without an interval can only
  do the latter, so it is never undecided if every number is in one of them;
- *not testable*: the claim's guard applies (an untrained reference, runs that did not end, missing hardware or data),
  or nothing was measured that has an interval.

Eight kinds of quantities cover every claim (``Statistic``): the paired ratio of two arms' losses (shortcuts); a
number of one run with its t interval over seeds (such as gates, bilstm and parallel); the difference of two
numbers whose intervals lie apart (parallel); the ratio of the expected best trials of two searches (figure1); the order
of two arms' runs (figure1); the rate of runs with a property, with Wilson's interval (shortcuts, bilstm, faulty-bilstm,
long-range, inits, gate-bias); the difference of two such rates (long-range); and counts of runs (thousand, gates,
recurrence) or exact numbers.

A rule has a date and a version. A change that can only withhold a verdict, such as a new guard, applies to all runs. If
any other change follows the rows of some seeds, only fresh seeds decide (``RuleVersion.seen``), or the verdict is at
most suggestive (``RuleVersion.known``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import Any, NamedTuple

from highway_bench.measure.statistics import CONFIDENCE
from highway_bench.report.format import three
from highway_bench.studies.reproduce.power import MOST, MOST_TRIALS, Power, PowerDesign
from highway_bench.studies.reproduce.quantities import Quantity, Region, Statistic, order_p, scatter_of, with_space


class Verdict(StrEnum):
    """The verdict of a measurement on a claim."""

    REPRODUCED = "reproduced"
    SUGGESTIVE = "suggestive"
    UNDECIDED = "undecided"
    SUGGESTIVE_AGAINST = "suggestive against"
    CONTRADICTED = "contradicted"
    NOT_TESTABLE = "not testable"  # with this budget, hardware or data; the finding says which


WEAKER = {Verdict.REPRODUCED: Verdict.SUGGESTIVE, Verdict.CONTRADICTED: Verdict.SUGGESTIVE_AGAINST}


class Evidence(StrEnum):
    """The origin of a claim, which limits what a measurement can show."""

    SOURCE = "the source"  # a paper's or a lecture's text, its authors' code or their logs
    SECONDARY = "second-hand"  # a review, a blog, a value read from a plot: gives a direction and no exact number
    COMPUTED = "arithmetic"  # computed from the published layers: agreement checks this project, not the paper
    OURS = "our reading"  # what the published statement implies here; its authors did not state it


class RuleVersion(NamedTuple):
    """The version of a reproduction's rules and its date.

    The rows of the first ``seen`` seeds were known before it, and no others decide; where those that decide are
    ``known`` too, a verdict is at most suggestive."""

    version: int = 1
    date: str = "2026-11-21"
    seen: int = 0
    known: bool = False


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What was measured of a claim.

    The ``decisive`` quantities must all lie in the claim's region; one of ``against`` (by default the decisive ones)
    can refute it. ``reported`` ones decide nothing. ``untestable`` is the reason why the guard applies; empty if it
    does not. ``unlike`` is the reason why the claim is not reproduced although the decisive quantities lie in its
    region. ``note`` is further text."""

    decisive: Sequence[Quantity] = ()
    against: Sequence[Quantity] | None = None
    reported: Sequence[Quantity] = ()
    untestable: str = ""
    unlike: str = ""
    note: str = ""

    @property
    def of_runs(self) -> Observation:
        """The observation without quantities of no run."""
        many = {name: getattr(self, name) for name in ("decisive", "against", "reported")}
        known: dict[str, Any] = {name: [one for one in own if one.n] for name, own in many.items() if own is not None}
        return replace(self, **known)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published statement and the rule for its verdict.

    ``quantity`` is what is measured, in words, with ``unit`` ("×" for a ratio). Its ``statistic`` over ``n`` runs gives
    an interval whose error is shared by ``comparisons`` claims (Bonferroni). Fewer than ``least`` runs decide nothing.
    ``region`` has the quantity if the statement holds; ``refuted`` has it if not, by default all outside of the region.
    ``irrefutable`` is the reason why nothing here can contradict the claim. ``guard`` says when it cannot be tested.
    ``observe`` takes the data and the confidence of intervals.

    ``effect`` is the quantity's value that the source states or implies; without one, a factor of 2, or 3 points or
    layers beyond the bound. It changes the power alone, never a verdict. ``scatter`` is the standard deviation of one
    run that is known beforehand, in decades for a ratio. ``needs`` is what this request lacks to measure the claim at
    all: its power is then 0.
    """

    statement: str
    source: str
    quantity: str
    observe: Callable[[Any, float], Observation]
    statistic: Statistic
    region: Region
    n: int = 1
    least: int = 1
    unit: str = ""
    evidence: Evidence = Evidence.SOURCE
    refuted: tuple[Region, ...] = ()
    irrefutable: str = ""
    guard: str = ""
    comparisons: int = 1
    effect: float = math.nan
    scatter: float = math.nan
    needs: str = ""
    version: RuleVersion = field(default_factory=RuleVersion)

    @property
    def exact(self) -> bool:
        """Whether the quantity has no scatter that more runs could average."""
        return self.statistic is Statistic.EXACT

    @property
    def confidence(self) -> float:
        return 1 - (1 - CONFIDENCE) / self.comparisons

    @property
    def quantity_text(self) -> str:
        """What is measured, with the kind of its interval."""
        if self.statistic in (Statistic.EXACT, Statistic.SHARE, Statistic.ORDER, Statistic.APART):
            return f"{self.quantity}, {self.statistic}"
        return f"{self.quantity}, {100 * self.confidence:.3g} % {self.statistic}"

    @property
    def rule(self) -> str:
        """The rule in words."""
        against = " or ".join(one.text(self.unit) for one in self.refuted) or "outside"
        parts = [
            f"{self.quantity_text}: reproduced if {self.region.text(self.unit)}",
            f"never contradicted: {self.irrefutable}" if self.irrefutable else f"contradicted if {against}",
            f"not testable {self.guard}" if self.guard else "",
            f"at least {self.least} runs" if self.least > 1 else "",
            f"rule {self.version.version} of {self.version.date}",
        ]
        fresh = f", on seeds from {self.version.seen} on" if self.version.seen else ""
        return "; ".join(filter(None, parts)) + fresh

    def judge(self, data: Any) -> Finding:
        """The finding from ``data``, which ``observe`` takes."""
        seen = self.observe(data, self.confidence)
        seen = seen if self.least > 1 else seen.of_runs  # with a least number, a quantity says how many runs it has
        verdict, why = self._verdict(seen)
        quantities = (*seen.decisive, *(seen.against or ()), *seen.reported)
        return Finding(
            claim=self,
            verdict=verdict,
            quantities=tuple(dict.fromkeys(quantities)),
            deciding=self._deciding(seen),
            note=seen.note,
            why=why,
        )

    def _deciding(self, seen: Observation) -> Quantity | None:
        """The first quantity that refutes the claim, or else that keeps it from being reproduced, or else the first."""
        against = seen.decisive if seen.against is None else seen.against
        refuting = (one for one in against if self._refutes(one))
        lacking = (one for one in seen.decisive if not self.region.has(one.low, one.high))
        return next(chain(refuting, lacking, seen.decisive), None)

    def _verdict(self, seen: Observation) -> tuple[Verdict, str]:
        """The verdict, and the reason if there is none."""
        against = seen.decisive if seen.against is None else seen.against
        fewest = min((one.n for one in seen.decisive), default=0)
        if seen.decisive and fewest < self.least:
            return Verdict.NOT_TESTABLE, f"{fewest} of at least {self.least} runs"
        if seen.untestable:
            return Verdict.NOT_TESTABLE, seen.untestable
        if not seen.decisive:
            return Verdict.NOT_TESTABLE, "not measured"
        if all(self.region.has(one.low, one.high) for one in seen.decisive):
            if seen.unlike:
                return Verdict.UNDECIDED, seen.unlike
            verdict = Verdict.REPRODUCED
        elif not any(self._refutes(one) for one in against):
            missing = any(math.isnan(one.low) or math.isnan(one.high) for one in seen.decisive)
            return (Verdict.NOT_TESTABLE, "no interval") if missing else (Verdict.UNDECIDED, "")
        elif self.irrefutable:
            return Verdict.NOT_TESTABLE, self.irrefutable
        else:
            verdict = Verdict.CONTRADICTED
        if self.version.known:
            return WEAKER[verdict], "the rule was written after these runs"
        chance = order_p(fewest) if self.statistic is Statistic.ORDER else 0.0
        if chance > 1 - self.confidence:
            return WEAKER[verdict], f"such an order has p = {chance:.2g} by chance; {1 - self.confidence:.2g} decides"
        return verdict, ""

    def _refutes(self, one: Quantity) -> bool:
        if self.refuted:
            return any(region.has(one.low, one.high) for region in self.refuted)
        return self.region.excludes(one.low, one.high)

    @property
    def stated(self) -> float:
        """The value that matters: the source's effect, or a factor of 2, or 3 points or layers beyond the bound; else
        NaN."""
        if not math.isnan(self.effect):
            return self.effect
        below = math.isinf(self.region.least)
        bound = self.region.most if below else self.region.least
        if math.isfinite(self.region.least) and math.isfinite(self.region.most):
            return (
                math.sqrt(self.region.least * self.region.most)
                if self.unit == "×"
                else (self.region.least + self.region.most) / 2
            )
        if self.unit == "×":
            return bound / 2 if below else 2 * bound
        return bound + (-3 if below else 3) if self.unit in ("%", "points", "layers") else math.nan

    def power(self, scatter: float = math.nan) -> Power | None:
        """The power of the claim's design with the scatter that is known beforehand, or else with ``scatter``.

        ``None`` for exact numbers and if no scatter is known; 0 if the request lacks what the claim ``needs``."""
        if self.needs:
            return Power(0, self.stated, 0.0, math.nan, None, math.nan)
        known = scatter if math.isnan(self.scatter) else self.scatter
        if self.exact or (math.isnan(known) and not self.statistic.counts):
            return None
        design = PowerDesign(
            self.statistic, self.n, self.confidence, known, self.region, self.unit == "×", max(2, self.least)
        )
        return design.summary(self.stated)

    def power_text(self, power: Power | None) -> str:
        """``power`` in words: what the design shows, and the number of runs that shows the claim's own effect."""
        if power is None:
            return "exact" if self.exact else "the scatter is not known"
        if self.needs:
            return f"0 runs: needs {self.needs}"
        unit, runs = with_space(self.unit), "trials" if self.statistic is Statistic.BEST else "runs"
        shown = []
        if not math.isnan(power.smallest):
            side = "more" if math.isinf(self.region.most) else "less"
            shown.append(f"{three(power.smallest)}{unit} or {side} in 80 % of repetitions")
        if not math.isnan(power.effect):
            shown.append(
                f"{three(power.effect)}{unit} in {100 * power.power:.0f} %" + ("" if shown else " of repetitions")
            )
        parts = [f"{power.n} {runs}" + (f" would show {', '.join(shown)}" if shown else "")]
        if not math.isnan(power.effect) and power.needed is None and self.statistic is not Statistic.SHARE:
            most = MOST_TRIALS if self.statistic is Statistic.BEST else MOST
            parts.append(f"up to {most} {runs}, no number would in 80 %")
            if not math.isnan(power.steady):
                scatter = f"{three(power.steady)}{' decades' if self.unit == '×' else unit}"
                parts.append(f"a scatter of {scatter}, which longer training may give, would")
        elif power.needed is not None and power.needed > power.n:
            parts.append(f"{power.needed} {runs} would in 80 %")
        return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One row of *published | measured | verdict*: a claim, what was measured of it, and its verdict.

    ``deciding`` is the one of the ``quantities`` on which the verdict depends, if there is one. ``note`` is text of the
    measurement; ``why`` is the reason for a missing or weak verdict."""

    claim: Claim
    verdict: Verdict
    quantities: Sequence[Quantity] = field(default=())
    deciding: Quantity | None = None
    note: str = ""
    why: str = ""

    @property
    def measured(self) -> str:
        """What was measured, in words."""
        text = "; ".join(filter(None, [*map(str, self.quantities), self.note]))
        return f"{text} ({self.why})" if text and self.why else text or self.why

    @property
    def power(self) -> Power | None:
        """The power of the design, from the scatter of the runs themselves if none was known before."""
        first = next(iter(self.quantities), None)
        if self.claim.statistic not in (Statistic.MEAN, Statistic.PAIRED) or first is None:
            return self.claim.power()
        scatter = scatter_of(first, self.claim.confidence)
        return self.claim.power(scatter / math.sqrt(2) if self.claim.statistic is Statistic.PAIRED else scatter)

    @property
    def power_text(self) -> str:
        """``power`` in words."""
        return self.claim.power_text(self.power)

    @property
    def entries(self) -> list[str]:
        """What is published, its evidence, what was measured, the verdict, the rule and the power, in words."""
        claim = self.claim
        return [claim.statement, str(claim.evidence), self.measured, str(self.verdict), claim.rule, self.power_text]

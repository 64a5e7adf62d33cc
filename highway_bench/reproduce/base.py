"""Reproduction: a published result that is measured again, and its findings.

A reproduction states the published claims with their sources, and the rule that decides each of them; both are fixed
before anything is run. It gives the cells to measure and derives the findings from their rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import ClassVar, TypeVar

import pandas as pd

from highway_bench.cell import Cell, canonical
from highway_bench.errors import UnknownName
from highway_bench.execution.needs import with_needs
from highway_bench.registry import Registry
from highway_bench.report.columns import Shown
from highway_bench.report.figures import Picture
from highway_bench.report.rows import groups
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import LATER_ATTEMPT, OUTCOMES, worst


class Verdict(StrEnum):
    """The verdict of a measurement on a claim."""

    REPRODUCED = "reproduced"
    CONTRADICTED = "contradicted"
    NOT_TESTABLE = "not testable"  # with this budget, hardware or data; the finding says which


class Evidence(StrEnum):
    """The origin of a claim, which limits what a measurement can show."""

    PAPER = "the paper"  # its text, its authors' code or their logs
    SECONDARY = "second-hand"  # a review, a blog, a value read from a plot: gives a direction and no exact number
    COMPUTED = "arithmetic"  # computed from the published layers: agreement checks this project, not the paper
    OURS = "our reading"  # what the published statement implies here; its authors did not state it


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One row of *published | measured | verdict*.

    ``published`` is the claim with its number, ``source`` its reference, ``evidence`` its origin, and ``rule`` the rule
    for the verdict, fixed before the runs; ``measured`` is the result with its interval and count.
    """

    published: str
    source: str
    measured: str
    verdict: Verdict
    evidence: Evidence = Evidence.PAPER
    rule: str = ""


@dataclass(frozen=True)
class NotAttempted:
    """A published result that is not reproduced here, and the reason."""

    published: str
    source: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """The findings, tables and figures of a reproduction whose cells were measured."""

    findings: Sequence[Finding]
    tables: Sequence[Shown] = ()
    pictures: Sequence[Picture] = field(default=())


class Reproduction(ABC):
    """One published result, or several of one experiment. Subclasses are registered with ``register_reproduction``.

    ``takes`` names the fields of ``Request`` that it accepts in addition to scale and device. The first of ``scales``
    is the default. With fewer seeds than ``least_seeds`` no verdict is given.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    takes: ClassVar[frozenset[str]] = frozenset()
    scales: ClassVar[tuple[str, ...]] = ("desk",)
    least_seeds: ClassVar[int] = 3
    not_attempted: ClassVar[tuple[NotAttempted, ...]] = ()

    def scale_of(self, request: Request) -> str:
        """The scale of ``request``. Raises ``UnknownName`` for one that this reproduction does not have."""
        scale = request.scale or self.scales[0]
        if scale not in self.scales:
            raise UnknownName(f"scale of {self.name}", scale, self.scales)
        return scale

    def conclude(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        """``outcome`` without the verdicts that its runs do not support.

        There is no verdict if any run did not end, or if the request has fewer than ``least_seeds`` seeds: the missing
        runs might change it. With a smaller budget than the scale's no claim is contradicted: any network fails if its
        training is too short."""
        outcome = self.outcome(rows, request)
        runs = list(with_needs(self.cells(request)))
        ended = ended_cells(rows)
        missing = sum(cell.key not in ended for cell in runs)
        why = f"{missing} of {len(runs)} runs did not end" if missing else ""
        if not why and request.seeds is not None and request.seeds < self.least_seeds:
            why = f"{request.seeds} of at least {self.least_seeds} seeds"
        if why:
            return replace(outcome, findings=[undecided(one, why) for one in outcome.findings])
        full = self.cells(replace(request, steps=None, epochs=None, trials=None))
        if any(has_smaller_budget(cell, other) for cell, other in zip(self.cells(request), full, strict=True)):
            why = "with less than this scale's budget"
            return replace(
                outcome,
                findings=[
                    undecided(one, why) if one.verdict == Verdict.CONTRADICTED else one for one in outcome.findings
                ],
            )
        return outcome

    @abstractmethod
    def cells(self, request: Request) -> list[Cell]:
        """The cells to measure. Their tasks add the cells that these need, such as the trials of a search."""

    @abstractmethod
    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        """Findings, tables and figures from ``rows``: the store's rows of the cells and of those that they needed,
        prepared as for a report. The rows of a failed cell have its status and no values."""


def undecided(finding: Finding, why: str) -> Finding:
    """``finding`` with the verdict "not testable", and the reason ``why`` after what was measured."""
    return replace(finding, verdict=Verdict.NOT_TESTABLE, measured=f"{finding.measured} ({why})")


def has_smaller_budget(cell: Cell, full: Cell) -> bool:
    """Whether ``cell`` trains for fewer steps than ``full``, or is the best of fewer trials."""
    budgets = [(one.recipe.get("steps", 0), one.recipe.get("search", {}).get("trials", 0)) for one in (cell, full)]
    return any(mine < theirs for mine, theirs in zip(*budgets, strict=True))


def ended_cells(rows: pd.DataFrame) -> set[str]:
    """Keys of the cells in ``rows`` that ended with a result; diverged and stalled runs are results."""
    first = rows[rows["axis"].ne(LATER_ATTEMPT)]
    return {key for key, part in rows_by_key(first).items() if worst(part["status"]) in OUTCOMES}


def rows_by_key(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """``rows`` by the key of their cell."""
    return {canonical(cell): part for cell, part in groups(rows, [item.name for item in fields(Cell)])}


reproductions: Registry[Reproduction] = Registry("reproduction", package="highway_bench.reproduce")

R = TypeVar("R", bound=type[Reproduction])


def register_reproduction(name: str, *, title: str, source: str) -> Callable[[R], R]:
    """Class decorator: add one instance of a reproduction to the registry."""

    def register(cls: R) -> R:
        cls.name, cls.title, cls.source = name, title, source
        reproductions.register(name, cls(), module=cls.__module__)
        return cls

    return register

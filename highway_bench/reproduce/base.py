"""Reproduction: a published result, measured again, and what came of it.

What a paper claims is written down here, with where it says so, beside the rule that decides; both stand before
anything is run. A reproduction gives the cells to measure, and reads the findings off their rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import ClassVar, TypeVar

import pandas as pd

from highway_bench.cell import Cell, canonical
from highway_bench.execution.needs import with_needs
from highway_bench.registry import Registry
from highway_bench.report.columns import Shown
from highway_bench.report.figures import Picture
from highway_bench.report.rows import groups
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import OUTCOMES


class Verdict(StrEnum):
    """What a measurement says of a claim."""

    REPRODUCED = "reproduced"
    CONTRADICTED = "contradicted"
    NOT_TESTABLE = "not testable"  # with this budget, this hardware or this data; the finding says which


class Evidence(StrEnum):
    """Where a claim comes from, and so what a measurement can be held against."""

    PAPER = "the paper"  # its text, its authors' code or their logs
    SECONDARY = "second-hand"  # a review, a blog, a reading of a plot: a direction, and no number to be held to
    COMPUTED = "arithmetic"  # follows from the published layers; agreeing checks this project, and reproduces nothing
    OURS = "our reading"  # what the published statement would mean here, which its authors did not say


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One row of *published | measured | verdict*.

    ``published`` is the claim in few words with its number, ``source`` where it stands, ``evidence`` of what kind it
    is, and ``rule`` what was agreed beforehand to decide; ``measured`` is what was found, with its interval and count.
    """

    published: str
    source: str
    measured: str
    verdict: Verdict
    evidence: Evidence = Evidence.PAPER
    rule: str = ""


@dataclass(frozen=True)
class NotAttempted:
    """A published result that is not tried here, and why."""

    published: str
    source: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """What a reproduction says once its cells were measured."""

    findings: Sequence[Finding]
    tables: Sequence[Shown] = ()
    pictures: Sequence[Picture] = field(default=())


class Reproduction(ABC):
    """One published result, or several of one experiment. Subclasses are registered with ``register_reproduction``.

    ``takes`` names the fields of ``Request`` that mean something here, besides the device; others are refused.
    ``least_seeds`` are those without which no verdict is given.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    takes: ClassVar[frozenset[str]] = frozenset()
    scales: ClassVar[tuple[str, ...]] = ("desk",)
    least_seeds: ClassVar[int] = 3
    not_attempted: ClassVar[tuple[NotAttempted, ...]] = ()

    def conclude(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        """``outcome``, with no verdict where a run that it rests on did not end, or where fewer seeds were requested
        than a verdict takes: what is left out might have said otherwise. Nor does a budget that was cut below the
        scale's contradict anything: any network fails that is trained for too short."""
        outcome = self.outcome(rows, request)
        runs = list(with_needs(self.cells(request)))
        ended = ended_cells(rows)
        left = sum(cell.key not in ended for cell in runs)
        why = f"{left} of {len(runs)} runs did not end" if left else ""
        if not why and request.seeds is not None and request.seeds < self.least_seeds:
            why = f"{request.seeds} of at least {self.least_seeds} seeds"
        if why:
            return replace(outcome, findings=[undecided(one, why) for one in outcome.findings])
        whole = self.cells(replace(request, steps=None, epochs=None, trials=None))
        if any(is_cut(cell, meant) for cell, meant in zip(self.cells(request), whole, strict=True)):
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
        """What is measured. Cells that these need (a search's trials) follow from them by their task."""

    @abstractmethod
    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        """Findings, tables and figures from ``rows``: the store's rows of all these cells and of what they needed,
        prepared as for a report. A cell that failed has rows that say so, and none of its metrics."""


def undecided(finding: Finding, why: str) -> Finding:
    """``finding`` without its verdict."""
    return replace(finding, verdict=Verdict.NOT_TESTABLE, measured=f"{finding.measured} ({why})")


def is_cut(cell: Cell, meant: Cell) -> bool:
    """Whether ``cell`` trains for fewer steps than ``meant``, or is the best of fewer trials."""
    budgets = [(one.recipe.get("steps", 0), one.recipe.get("search", {}).get("trials", 0)) for one in (cell, meant)]
    return any(mine < theirs for mine, theirs in zip(*budgets, strict=True))


def ended_cells(rows: pd.DataFrame) -> set[str]:
    """Keys of the cells in ``rows`` that ended in a result, be it that they diverged or stalled."""
    ended = rows[rows["status"].isin([str(status) for status in OUTCOMES])]
    named = groups(ended, [item.name for item in fields(Cell)])
    return {canonical(cell) for cell, _ in named}


reproductions: Registry[Reproduction] = Registry("reproduction", package="highway_bench.reproduce")

R = TypeVar("R", bound=type[Reproduction])


def register_reproduction(name: str, *, title: str, source: str) -> Callable[[R], R]:
    """Class decorator: put one instance of a reproduction into the registry."""

    def register(cls: R) -> R:
        cls.name, cls.title, cls.source = name, title, source
        reproductions.register(name, cls(), module=cls.__module__)
        return cls

    return register

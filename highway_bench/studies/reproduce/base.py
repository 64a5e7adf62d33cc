"""Reproduction: a published result that is measured again, and its findings.

A reproduction states its claims before anything is run. It gives the cells to measure, of which some may follow from
the results of others, and judges the claims by their rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

import pandas as pd

from highway_bench.cell import Cell, canonical
from highway_bench.errors import UnknownName
from highway_bench.execution.schedule import with_needs
from highway_bench.frames.rows import plain, rows_of
from highway_bench.registry import Registry
from highway_bench.report.columns import TextTable
from highway_bench.report.figures import Picture
from highway_bench.results.schema import LATER_ATTEMPT, OUTCOMES, worst
from highway_bench.studies.decide.rounds import rounds
from highway_bench.studies.reproduce.claims import Claim, Finding, RuleVersion, Verdict
from highway_bench.studies.reproduce.request import Request

Metrics = Mapping[str, float]
"""The scalar metrics of a cell."""
Evaluated = tuple[Any, Sequence[TextTable], Sequence[Picture]]
"""What the claims of a reproduction observe, its tables and its figures."""


@dataclass(frozen=True)
class NotAttempted:
    """A published result that is not reproduced here, and the reason."""

    published: str
    source: str
    why: str = "the data are not here"


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """The findings, tables and figures of a reproduction whose cells were measured. ``incomplete`` says how many of its
    runs did not end; empty if all did."""

    findings: Sequence[Finding]
    incomplete: str = ""
    tables: Sequence[TextTable] = ()
    pictures: Sequence[Picture] = field(default=())


class Reproduction(ABC):
    """One published result, or several of one experiment. Subclasses are registered with ``register_reproduction``.

    ``takes`` names the fields of ``Request`` that it accepts in addition to scale and device. The first of ``scales``
    is the default. A request without seeds has ``default_seeds``; with fewer than ``least_seeds`` no verdict is given.
    ``plugins`` are modules that register entries of its cells which no other command lists: faults and tools of others.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    takes: ClassVar[frozenset[str]] = frozenset()
    scales: ClassVar[tuple[str, ...]] = ("desk",)
    default_seeds: ClassVar[int] = 1
    least_seeds: ClassVar[int] = 3
    version: ClassVar[RuleVersion] = RuleVersion()
    plugins: ClassVar[tuple[str, ...]] = ()
    not_attempted: ClassVar[tuple[NotAttempted, ...]] = ()

    def scale_of(self, request: Request) -> str:
        """The scale of ``request``. Raises ``UnknownName`` for one that this reproduction does not have."""
        scale = request.scale or self.scales[0]
        if scale not in self.scales:
            raise UnknownName(f"scale of {self.name}", scale, self.scales)
        return scale

    def seeds(self, request: Request, default: int = 0) -> range:
        """The seeds of ``request``, by default ``default`` of them or ``default_seeds``, from ``version.seen`` on."""
        first = self.version.seen
        return range(first, first + (request.seeds or default or self.default_seeds))

    def design(self, request: Request) -> dict[str, Any]:
        """The number of runs of a claim on every seed, and the version of its rule."""
        return {"n": len(self.seeds(request)), "version": self.version}

    def conclude(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        """``outcome`` without the verdicts that its runs do not support.

        There is no verdict if any run did not end, or if the request has fewer than ``least_seeds`` seeds: the missing
        runs might change it. There is none with a smaller budget than the scale's either: any network fails if its
        training is too short, which would contradict one claim and reproduce another."""
        outcome = self.outcome(rows, request)
        runs = list(with_needs(self.known_cells(request, rows)))
        ended = ended_cells(rows)
        missing = sum(cell.identity not in ended for cell in runs)
        why = incomplete = f"{missing} of {len(runs)} runs did not end" if missing else ""
        if not why and request.seeds is not None and request.seeds < self.least_seeds:
            why = f"{request.seeds} of at least {self.least_seeds} seeds"
        full = self.cells(replace(request, steps=None, epochs=None, trials=None))
        if not why and any(map(has_smaller_budget, self.cells(request), full)):
            why = "with less than this scale's budget"
        if not why:
            return outcome
        withheld = [replace(one, verdict=Verdict.NOT_TESTABLE, why=why) for one in outcome.findings]
        return replace(outcome, findings=withheld, incomplete=incomplete)

    def fresh(self, rows: pd.DataFrame) -> pd.DataFrame:
        """``rows`` without the runs of seeds whose rows were seen before the rules were changed."""
        return rows[rows["trial"].notna() | (rows["seed"] >= self.version.seen)]

    @abstractmethod
    def cells(self, request: Request) -> list[Cell]:
        """The cells to measure first. Their tasks add the cells that these need, such as the trials of a search."""

    def pending(self, request: Request, values: Mapping[Cell, Metrics]) -> list[Cell]:
        """The cells to measure next, given the ``values`` of those that ended, such as a run at a further learning
        rate. By default none follow from others."""
        return []

    @property
    def has_rounds(self) -> bool:
        """Whether some cells follow from the results of others."""
        return type(self).pending is not Reproduction.pending

    def in_rounds(self, request: Request, measure: Callable[[list[Cell]], Mapping[Cell, Metrics]]) -> list[Cell]:
        """``measure`` the cells of ``request``, with all that follow from the results so far; all of them in order."""
        first = self.cells(request)
        return list(rounds(lambda values: [*first, *self.pending(request, values)], measure))

    def known_cells(
        self, request: Request, rows: pd.DataFrame, otherwise: Callable[[Cell], Metrics] = lambda cell: {}
    ) -> list[Cell]:
        """The cells of ``request``, with all that follow from the ``rows`` so far. A cell that these do not have ended
        as ``otherwise`` says, by default not yet."""
        if not self.has_rounds:
            return list(dict.fromkeys(self.cells(request)))
        metrics = metrics_by_cell(rows)

        def known(cells: Iterable[Cell]) -> dict[Cell, Metrics]:
            return {cell: found for cell in cells if (found := metrics.get(cell.identity) or otherwise(cell))}

        return self.in_rounds(request, known)

    def usual_cells(self, request: Request, rows: pd.DataFrame) -> list[Cell]:
        """``known_cells`` with those that usually follow from the rest, for an estimate of the cost."""
        return self.known_cells(request, rows)

    @abstractmethod
    def claims(self, request: Request) -> Sequence[Claim]:
        """The claims with their rules and designs, in the order of the findings. Reads no rows."""

    @abstractmethod
    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        """What the claims observe, and the tables and figures of it, from ``rows``: the store's rows of the cells and
        of those that they needed, prepared as for a report. The rows of a failed cell have its status and no values."""

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        """``evaluated`` with the findings of the claims."""
        data, tables, pictures = self.evaluated(rows, request)
        findings = [claim.judge(data) for claim in self.claims(request)]
        return Conclusion(findings=findings, tables=tables, pictures=pictures)


def has_smaller_budget(cell: Cell, full: Cell) -> bool:
    """Whether ``cell`` trains for fewer steps than ``full``, or is the best of fewer trials."""
    budgets = [(one.recipe.get("steps", 0), one.recipe.get("search", {}).get("trials", 0)) for one in (cell, full)]
    return any(mine < theirs for mine, theirs in zip(*budgets, strict=True))


# --------------------------------------------------------------------------------- what was measured of the cells


def measured(rows: pd.DataFrame, cells: Iterable[Cell]) -> dict[Cell, dict[str, float]]:
    """The scalar metrics of every cell in prepared ``rows``; empty for a cell without a result. A null is NaN.

    ``params``, the network's number of parameters, is among them where it is known."""
    found = metrics_by_cell(rows)
    return {cell: found.get(cell.identity, {}) for cell in cells}


def metrics_by_cell(rows: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The scalar metrics of every cell with a result, by the key of the cell."""
    # A cell that failed has rows too. Their nulls must not be taken for diverged losses
    frame = rows[(rows["axis"].fillna("") == "") & rows["status"].isin(OUTCOMES)]
    found: dict[str, dict[str, float]] = {}
    numbers = [frame[name].astype("float64").tolist() for name in ("value", "params")]
    for key, metric, value, params in zip(keys_of(frame), frame["metric"], *numbers, strict=True):
        metrics = found.setdefault(key, {})
        metrics[metric] = value
        if not math.isnan(params):
            metrics["params"] = params
    return found


def ended_cells(rows: pd.DataFrame) -> set[str]:
    """Keys of the cells in ``rows`` that ended with a result; diverged and stalled runs are results."""
    first = rows[rows["axis"].ne(LATER_ATTEMPT)]
    statuses: dict[str, set[str]] = {}
    for key, status in zip(keys_of(first), first["status"], strict=True):
        statuses.setdefault(key, set()).add(status)
    return {key for key, ended in statuses.items() if worst(ended) in OUTCOMES}


def keys_of(rows: pd.DataFrame) -> list[str]:
    """The key of the cell of each row."""
    if "as_run" in rows:
        rows = rows.assign(recipe=rows["as_run"])
    names = [item.name for item in fields(Cell)]
    numbers = rows.groupby(names, dropna=False, sort=False).ngroup()
    firsts = rows.loc[numbers.drop_duplicates().index]
    keys = [canonical({name: plain(value) for name, value in one.items()}) for one in rows_of(firsts[names])]
    return [keys[number] for number in numbers]


reproductions: Registry[Reproduction] = Registry("reproduction", package="highway_bench.studies.reproduce")

R = TypeVar("R", bound=type[Reproduction])


def register_reproduction(name: str, *, title: str, source: str) -> Callable[[R], R]:
    """Class decorator: add one instance of a reproduction to the registry."""

    def register(cls: R) -> R:
        cls.name, cls.title, cls.source = name, title, source
        reproductions.register(name, cls(), module=cls.__module__)
        return cls

    return register

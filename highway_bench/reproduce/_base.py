"""Reproduction: a published result, measured again, and what came of it.

What a paper claims is written down here, with where it says so, beside the rule that decides; both stand before
anything is run. A reproduction gives the cells to measure, and reads the findings off their rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, TypeVar

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.registry import Registry
from highway_bench.report.figures import Picture
from highway_bench.report.present import Shown


class Verdict(StrEnum):
    """What a measurement says of a claim."""

    REPRODUCED = "reproduced"
    CONTRADICTED = "contradicted"
    NOT_TESTABLE = "not testable"  # with this budget, this hardware or this data; the finding says which


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One row of *published | measured | verdict*.

    ``published`` is the claim in few words with its number, ``source`` where it stands, and ``rule`` what was agreed
    beforehand to decide; ``measured`` is what was found, with its interval and count.
    """

    published: str
    source: str
    measured: str
    verdict: Verdict
    rule: str = ""


@dataclass(frozen=True)
class NotAttempted:
    """A published result that is not tried here, and why."""

    published: str
    source: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a user asked for. ``None`` leaves a number to the reproduction's scale."""

    scale: str = "desk"
    device: str = "cpu"
    epochs: int | None = None
    steps: int | None = None
    trials: int | None = None
    seeds: int | None = None
    depths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("epochs", "steps", "trials", "seeds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadInput(f"{name} must be at least 1, not {value}")
        for depth in self.depths:
            if depth < 1:
                raise BadInput(f"depth must be at least 1, not {depth}")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a reproduction says once its cells were measured."""

    findings: Sequence[Finding]
    tables: Sequence[Shown] = ()
    pictures: Sequence[Picture] = field(default=())


class Reproduction(ABC):
    """One published result, or several of one experiment. Subclasses are registered with ``register_reproduction``.

    ``takes`` names the fields of ``Asked`` that mean something here, besides the device; others are refused.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    takes: ClassVar[frozenset[str]] = frozenset()
    scales: ClassVar[tuple[str, ...]] = ("desk",)
    not_attempted: ClassVar[tuple[NotAttempted, ...]] = ()

    @abstractmethod
    def cells(self, asked: Asked) -> list[Cell]:
        """What is measured. Cells that these need (a search's trials) follow from them by their task."""

    @abstractmethod
    def outcome(self, rows: pd.DataFrame, asked: Asked) -> Outcome:
        """Findings, tables and figures from ``rows``: the store's rows of all these cells and of what they needed,
        prepared as for a report. A cell that failed has rows that say so, and none of its metrics."""


reproductions: Registry[Reproduction] = Registry("reproduction", package="highway_bench.reproduce")

R = TypeVar("R", bound=type[Reproduction])


def register_reproduction(name: str, *, title: str, source: str) -> Callable[[R], R]:
    """Class decorator: put one instance of a reproduction into the registry."""

    def register(cls: R) -> R:
        cls.name, cls.title, cls.source = name, title, source
        reproductions.register(name, cls(), place=cls.__module__)
        return cls

    return register

"""Estimate: time and memory of a run, from closed forms: no network is built, nothing is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from highway_bench.cell import Cell
from highway_bench.execution.progress import TimeLeft
from highway_bench.execution.rerun import FAILED, Rerun
from highway_bench.execution.schedule import Schedule
from highway_bench.results.store import Store


@dataclass(frozen=True)
class Estimate:
    """All ``cells`` of a run, trials of searches included, and how many of them are ``stored`` already.

    ``seconds`` is the time for the cells that are not stored, ``bytes`` the memory for the largest of these.
    """

    cells: tuple[Cell, ...]
    stored: int
    seconds: float
    bytes: int


def estimate(cells: Mapping[Cell, tuple[Cell, ...]], store: Store, *, workers: int, rerun: str = FAILED) -> Estimate:
    """The cost of ``run_cells``; ``cells`` maps each cell to the cells it needs. Nothing is written into ``store``."""
    schedule = Schedule(store, Rerun(rerun))
    schedule.add(cells)
    schedule.rerun.check(schedule.items)
    schedule.ready()
    left = [item for item in schedule.items.values() if item.status is None]
    return Estimate(
        tuple(schedule.items),
        len(schedule.items) - len(left),
        TimeLeft(left, workers).seconds,
        max((item.cost.bytes for item in left), default=0),
    )

"""Estimate: time and memory of a run. Time comes from closed forms, the largest cell's memory from shallow networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS
from highway_bench.execution.progress import TimeLeft
from highway_bench.execution.rerun import FAILED, Rerun
from highway_bench.execution.schedule import Schedule, ScheduledCell
from highway_bench.results.store import Store
from highway_bench.tasks.predicted_peak import predicted_bytes, prediction_flops

MOST_PREDICTED: Final = 3
MOST_FLOPS: Final = 2e11  # of a prediction: a few seconds on a CPU


@dataclass(frozen=True)
class Estimate:
    """All ``cells`` of a run, trials of searches included, and how many of them are ``stored`` already.

    ``seconds`` is the time for the cells that are not stored, ``bytes`` the memory for the largest of these, without
    that of the process and its libraries.
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
        largest_bytes(left),
    )


def largest_bytes(items: Iterable[ScheduledCell]) -> int:
    """The bytes of the largest cell: those with the largest closed forms, of different layers and data, are
    predicted."""
    largest: dict[tuple[str, str, str | None], ScheduledCell] = {}
    for item in sorted(items, key=lambda item: -item.cost.bytes):
        largest.setdefault((item.ran.block, item.ran.family, item.ran.dataset), item)
    return max(map(bytes_of, list(largest.values())[:MOST_PREDICTED]), default=0)


def bytes_of(item: ScheduledCell) -> int:
    """The predicted bytes of a cell, or the closed form where the prediction takes long or its network cannot run."""
    try:
        return predicted_bytes(item.ran) if prediction_flops(item.ran) <= MOST_FLOPS else item.cost.bytes
    except USER_ERRORS:  # its row will say why: a combination that makes no sense, missing data, a user's layer
        return item.cost.bytes

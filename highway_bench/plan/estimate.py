"""Estimate: what a run would take, from closed forms alone: no network is built, nothing is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from highway_bench.cell import Cell
from highway_bench.execution.backlog import Backlog
from highway_bench.execution.progress import TimeLeft
from highway_bench.results.store import Store


@dataclass(frozen=True)
class Estimate:
    """What a run would do: ``cells`` in all, trials of searches included, and of these what is in the store already.

    ``seconds`` are those of the cells that are not; ``bytes`` what the largest of these needs.
    """

    cells: tuple[Cell, ...]
    stored: int
    seconds: float
    bytes: int


def estimate(cells: Mapping[Cell, tuple[Cell, ...]], store: Store, *, workers: int, resume: bool = True) -> Estimate:
    """What ``run_cells`` would do with ``cells``, each with what it needs. Nothing is written into ``store``."""
    backlog = Backlog(store, resume)
    backlog.add(cells)
    backlog.ready()
    left = [item for item in backlog.items.values() if item.status is None]
    return Estimate(
        tuple(backlog.items),
        len(backlog.items) - len(left),
        TimeLeft(left, workers).seconds,
        max((item.cost.bytes for item in left), default=0),
    )

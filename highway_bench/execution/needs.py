"""Needs: the cells of a run with all that they need, such as the trials of a search."""

from __future__ import annotations

from collections.abc import Iterable

from highway_bench.cell import Cell
from highway_bench.tasks.base import tasks


def with_needs(cells: Iterable[Cell]) -> dict[Cell, tuple[Cell, ...]]:
    """``cells`` and all that they need, each once and with what it needs itself; those that were given come first.

    Raises ``UnknownName`` for a task, block or family that is not registered.
    """
    needs: dict[Cell, tuple[Cell, ...]] = {}
    waiting = list(dict.fromkeys(cells))
    for cell in waiting:  # grows: a needed cell may need others
        if cell not in needs:
            needs[cell] = tuple(tasks.get(cell.task).needs(cell))
            waiting.extend(needs[cell])
    return needs

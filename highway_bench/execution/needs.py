"""Needs: a run's cells, and the cells that these need, such as the trials of a search."""

from __future__ import annotations

from collections.abc import Iterable

from highway_bench.cell import Cell
from highway_bench.tasks.base import tasks


def with_needs(cells: Iterable[Cell]) -> dict[Cell, tuple[Cell, ...]]:
    """``cells`` and all cells that they need, each once, with the cells it needs itself. ``cells`` come first.

    Raises ``UnknownName`` for a task, block or family that is not registered.
    """
    needs: dict[Cell, tuple[Cell, ...]] = {}
    waiting = list(dict.fromkeys(cells))
    for cell in waiting:  # grows: a needed cell may need others
        if cell not in needs:
            needs[cell] = tuple(tasks.get(cell.task).needs(cell))
            waiting.extend(needs[cell])
    return needs

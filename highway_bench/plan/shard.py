"""Shard: a part of a plan's cells, for one of several machines that share no network."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.tasks import tasks


def shard(needs: Mapping[Cell, tuple[Cell, ...]], part: str) -> set[Cell]:
    """The cells of ``part`` ("3/8": the third of eight) of the cells ``needs``, each with the cells that it needs.

    Cells that are measured together, or that need the same ones, belong to one part. The most costly of such units goes
    first, each to the part with the least cost so far. The parts depend on the cells alone: every machine that computes
    them gets the same, whatever its store has. Raises ``BadInput`` for a part that is none.
    """
    number, parts = _parsed(part)
    loads = [0.0] * parts
    chosen: set[Cell] = set()
    costs = [(sum(map(_seconds, unit)), unit) for unit in units(needs)]
    for cost, unit in sorted(costs, key=lambda one: -one[0]):  # stable: equal costs stay in the plan's order
        least = loads.index(min(loads))
        loads[least] += cost
        if least == number - 1:
            chosen.update(unit)
    return chosen


def units(needs: Mapping[Cell, tuple[Cell, ...]]) -> list[list[Cell]]:
    """The cells in sets that no needed cell and no group crosses, in the order of their first cells."""
    parents: dict[Cell, Cell] = {cell: cell for cell in needs}

    def root(cell: Cell) -> Cell:
        while parents[cell] != cell:
            parents[cell] = parents[parents[cell]]
            cell = parents[cell]
        return cell

    groups: dict[Hashable, Cell] = {}
    for cell, needed in needs.items():
        task = tasks.get(cell.task)
        first = groups.setdefault((cell.task, task.group(cell), cell.threads), cell)
        for other in (first, *needed):
            parents[root(other)] = root(cell)
    found: defaultdict[Cell, list[Cell]] = defaultdict(list)
    for cell in needs:
        found[root(cell)].append(cell)
    return list(found.values())


def _parsed(part: str) -> Sequence[int]:
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", part)
    number, parts = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= parts:
        raise BadInput(f"--shard {part!r}: write it as 3/8, the third of eight parts")
    return number, parts


def _seconds(cell: Cell) -> float:
    try:
        return tasks.get(cell.task).cost(cell).seconds
    except USER_ERRORS:  # a plug-in's; its row will say why it failed
        return 1.0

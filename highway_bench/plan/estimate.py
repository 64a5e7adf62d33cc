"""Estimate: time and memory of a run, and parts of equal cost, for machines that share no network.

Closed forms give the costs; shallow networks of the costliest cells correct them.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.execution.progress import TimeLeft
from highway_bench.execution.schedule import FAILED, Schedule, ScheduledCell, cost_of
from highway_bench.provenance.free_memory import PROCESS_BYTES, usable_bytes
from highway_bench.results.store import Store
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import network_bytes
from highway_bench.tasks.predicted_costs import (
    DEPTHS,
    MOST_PEAK,
    TIMED,
    is_timed,
    predicted_bytes,
    predicted_seconds,
    prediction_flops,
)

Number = TypeVar("Number", int, float)

MOST_PREDICTED: Final = 3  # cells of different layers or data
MOST_FLOPS: Final = 2e11  # of a prediction: a few seconds on a CPU
DEEPEST: Final = max(*DEPTHS, *TIMED)  # of the networks that predictions run


@dataclass(frozen=True)
class Estimate:
    """All ``cells`` of a run, trials of searches included; ``left`` are those that are not stored yet.

    ``seconds`` and ``bytes`` run shallow networks when they are first read.
    """

    cells: tuple[Cell, ...]
    left: Sequence[ScheduledCell]
    workers: int

    @property
    def stored(self) -> int:
        """The number of cells that are stored already."""
        return len(self.cells) - len(self.left)

    @cached_property
    def seconds(self) -> float:
        """The time for the cells that are left. That of trainings is the closed form, times its mean error in the
        costliest."""
        trained, others = ([item for item in self.left if is_timed(item.ran) == one] for one in (True, False))
        pairs = [
            (predicted, item.cost.seconds)
            for item in costliest(trained, lambda item: item.cost.seconds)
            if (predicted := predicted_by(predicted_seconds, item)) is not None
        ]
        predicted, closed_form = (math.fsum(part) for part in zip(*pairs, strict=True)) if pairs else (1.0, 1.0)
        correction = predicted / closed_form
        return TimeLeft(others, self.workers).seconds + correction * TimeLeft(trained, self.workers).seconds

    @cached_property
    def bytes(self) -> int:
        """The memory for the largest cell that is left, without that of the process and its libraries: the closed form,
        which is corrected where it may be more than these take."""
        largest = costliest(self.left, lambda item: item.cost.bytes)
        if all(item.cost.bytes <= PROCESS_BYTES for item in largest):
            return max((item.cost.bytes for item in largest), default=0)
        return max((predicted_by(predicted_bytes, item) or item.cost.bytes for item in largest), default=0)


def estimate(
    cells: Mapping[Cell, tuple[Cell, ...]],
    store: Store,
    *,
    workers: int,
    rerun: str = FAILED,
    strict_source: bool = False,
) -> Estimate:
    """The cost of ``run_cells``; ``cells`` maps each cell to the cells it needs. Nothing is written into ``store``."""
    schedule = Schedule(store, rerun, strict_source)
    schedule.add(cells)
    schedule.check_rerun()
    schedule.ready()
    left = [item for item in schedule.items.values() if item.status is None]
    return Estimate(tuple(schedule.items), left, workers)


def costliest(items: Iterable[ScheduledCell], cost: Callable[[ScheduledCell], float]) -> list[ScheduledCell]:
    """The few items of the highest ``cost``, one of each block in each family on each data set."""
    highest: dict[tuple[str, str, str | None], ScheduledCell] = {}
    for item in sorted(items, key=cost, reverse=True):
        highest.setdefault((item.ran.block, item.ran.family, item.ran.dataset), item)
    return list(highest.values())[:MOST_PREDICTED]


def predicted_by(predict: Callable[[Cell], Number], item: ScheduledCell) -> Number | None:
    """The prediction for a cell; ``None`` where it would take long or much memory, or the cell's network cannot run."""
    cell = item.ran
    try:
        needed = MOST_PEAK * network_bytes(cell.but(depth=min(cell.depth, DEEPEST)))
        is_cheap = prediction_flops(cell) <= MOST_FLOPS and needed <= usable_bytes("cpu")
        return predict(cell) if is_cheap else None
    except USER_ERRORS:  # its row will say why: a combination that makes no sense, missing data, a user's layer
        return None


def shard(needs: Mapping[Cell, tuple[Cell, ...]], part: str) -> set[Cell]:
    """The cells of ``part`` ("3/8": the third of eight) of the cells ``needs``, each with the cells that it needs.

    Cells that are measured together, or that need the same ones, belong to one part. The most costly of such units goes
    first, each to the part with the least cost so far. The parts depend on the cells alone: every machine that computes
    them gets the same, whatever its store has. Raises ``BadInput`` for a part that is none.
    """
    number, parts = _parsed(part)
    loads = [0.0] * parts
    chosen: set[Cell] = set()
    costs = [(sum(cost_of(cell).seconds for cell in unit), unit) for unit in units(needs)]
    for cost, unit in sorted(costs, key=lambda one: -one[0]):  # stable: equal costs stay in the plan's order
        least = loads.index(min(loads))
        loads[least] += cost
        if least == number - 1:
            chosen.update(unit)
    return chosen


def units(needs: Mapping[Cell, tuple[Cell, ...]]) -> list[list[Cell]]:
    """The cells in sets that no needed cell and no group crosses, in the order of their first cells."""
    numbers = {cell: number for number, cell in enumerate(needs)}
    groups: dict[Hashable, int] = {}  # the first cell of each
    pairs: list[tuple[int, int]] = []
    for cell, needed in needs.items():
        number, group = numbers[cell], (cell.task, tasks.get(cell.task).group(cell), cell.threads)
        pairs += [(number, other) for other in (groups.setdefault(group, number), *(numbers[one] for one in needed))]
    together = coo_array((np.ones(len(pairs)), tuple(zip(*pairs, strict=True))), shape=(len(needs), len(needs)))
    found: defaultdict[int, list[Cell]] = defaultdict(list)
    for cell, unit in zip(needs, connected_components(together, directed=False)[1], strict=True):
        found[unit].append(cell)
    return list(found.values())


def _parsed(part: str) -> Sequence[int]:
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", part)
    number, parts = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= parts:
        raise BadInput(f"--shard {part!r}: write it as 3/8, the third of eight parts")
    return number, parts

"""Timing a group of cells against plain and a yard-stick, in turn, in several processes.

A process gives each cell one number: the median over rounds of the logarithm of its time over plain's in the same
round. The interval covers the processes, because what lasts as long as a process would otherwise pass for a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.families import families
from highway_bench.matching import baseline
from highway_bench.measure.clock import Budget, Turns, take_turns
from highway_bench.measure.device import freed
from highway_bench.measure.gpu_watch import stopwatch_of
from highway_bench.measure.precision import ieee_float32
from highway_bench.measure.processes import call_in, keep_freed_memory, pinned, sample_processes
from highway_bench.measure.statistics import IntervalEstimate, ratio_over_processes
from highway_bench.measure.yardsticks import YardstickStep
from highway_bench.registry import load_plugin, modules_of
from highway_bench.tasks._step import StackStep
from highway_bench.tasks.from_cell import cell_family
from highway_bench.tasks.modes import compiler_caches

YARDSTICK = "yard-stick"

Timed = Cell | str
"""What is timed in a round: a cell, or the yard-stick."""


@dataclass
class CellTimes:
    """The paired samples of one cell, in seconds: its own, plain's and the yard-stick's in the same rounds.

    Sample i belongs to a round of process ``process[i]``. ``wall`` is the wall time of the cell's own call. On a GPU,
    ``gpu`` and ``plain_gpu`` are the GPU times of the cell's and plain's step in the same rounds, and ``clock_rate`` is
    the clock rate in Hz; they are empty elsewhere.
    """

    seconds: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    yardstick: list[float] = field(default_factory=list)
    process: list[int] = field(default_factory=list)
    gpu: list[float] = field(default_factory=list)
    plain_gpu: list[float] = field(default_factory=list)
    clock_rate: list[float] = field(default_factory=list)

    def ratio(self, other: Sequence[float]) -> IntervalEstimate:
        """The cell's time over ``other``, with its interval over processes and other programs; to itself exactly 1."""
        wall = None if other == self.seconds else self.wall
        return ratio_over_processes(self.seconds, other, self.process, wall=wall)

    @property
    def paired(self) -> dict[str, Sequence[float]]:
        """What is stored next to the samples."""
        named = ("process", "wall", "plain", "yardstick", *(("clock_rate",) if self.clock_rate else ()))
        return {name: getattr(self, name) for name in named}


@dataclass
class GroupTimes:
    """The samples of a group's cells. ``disturbed`` counts the rounds that were left out, ``cut_short`` the processes
    that took fewer rounds than they should, ``all_disturbed`` those without an undisturbed round. ``failures`` are the
    reasons of processes that gave no samples. On a GPU, ``capped`` counts the rounds that a capped clock disturbed,
    ``caps`` has the causes, and ``unread`` is the reason why no cause could be read."""

    cells: dict[Cell, CellTimes]
    processes: int = 0
    disturbed: int = 0
    cut_short: int = 0
    all_disturbed: int = 0
    failures: list[str] = field(default_factory=list)
    capped: int = 0
    caps: frozenset[str] = frozenset()
    unread: str | None = None

    def add(self, turns: Turns[Timed]) -> None:
        """Add the rounds of one more process."""
        for cell, times in self.cells.items():
            times.seconds += turns.seconds[cell]
            times.wall += turns.wall[cell]
            times.plain += turns.seconds[plain_of(cell)]
            times.yardstick += turns.seconds[YARDSTICK]
            times.process += [self.processes] * len(turns.seconds[cell])
            times.gpu += turns.on_gpu.get(cell, [])
            times.plain_gpu += turns.on_gpu.get(plain_of(cell), [])
            times.clock_rate += turns.clock_rate
        self.processes += 1
        self.disturbed += turns.disturbed
        self.cut_short += turns.cut_short
        self.all_disturbed += turns.all_disturbed
        self.capped += turns.capped
        self.caps |= turns.caps
        self.unread = self.unread or turns.unread

    def precise(self, precision: float) -> bool:
        """Whether every ratio to plain is known to ± ``precision`` but for what more samples cannot show."""
        ratios = [
            ratio_over_processes(times.seconds, times.plain, times.process)
            for cell, times in self.cells.items()
            if cell != plain_of(cell)
        ]
        return all(ratio.high / ratio.value - 1 <= precision for ratio in ratios)


def time_group(
    works: Mapping[Cell, StackStep],
    budget: Budget,
    *,
    processes: int,
    precision: float,
    most_seconds: float,
    caches: str | None = None,
) -> GroupTimes:
    """Time ``works``, whose cells differ only in block and mode, in turn with plain and their yard-stick.

    They are timed in this process, then in ``processes`` − 1 others, and in further ones until every ratio to plain is
    known to ± ``precision`` or ``most_seconds`` are over (see ``sample_processes``). The folder ``caches``, if given,
    has what this process compiled.
    """
    cells = tuple(works)
    times = GroupTimes({cell: CellTimes() for cell in cells})
    modules = modules_for(cells)

    def sample(number: int) -> None:
        times.add(
            call_in(number, turns_of, cells, modules, budget, number, caches)
            if number
            else _take_turns(works, budget, 0)
        )

    times.failures = sample_processes(
        sample, lambda: times.precise(precision), least=processes, most_seconds=most_seconds
    )
    return times


def turns_of(
    cells: Sequence[Cell], modules: Iterable[str], budget: Budget, number: int, caches: str | None
) -> Turns[Timed]:
    """The rounds of ``cells`` in this process, the one of this ``number``, which imports ``modules`` first.

    What another process compiled in the folder ``caches`` is not compiled again.
    """
    for module in modules:
        load_plugin(module)
    torch.set_num_threads(cells[0].threads)
    ieee_float32()
    keep_freed_memory()
    with freed(cells[0].device), compiler_caches(caches):
        return _take_turns({cell: StackStep(cell) for cell in cells}, budget, number)


def _take_turns(works: Mapping[Cell, StackStep], budget: Budget, number: int) -> Turns[Timed]:
    plain = {plain_of(cell): works.get(plain_of(cell)) or StackStep(plain_of(cell)) for cell in works}
    first, work = next(iter(plain.items()))
    stacks: dict[Timed, StackStep] = dict((*works.items(), *plain.items()))
    arms: dict[Timed, StackStep | YardstickStep] = {**stacks, YARDSTICK: yardstick_step(first, work)}
    one_thread = first.device == "cpu" and first.threads == 1
    with pinned(number if one_thread else None):
        return take_turns(
            {arm: work.step for arm, work in arms.items()},
            budget,
            restore={arm: work.restore for arm, work in arms.items()},
            launch={arm: stack.launch for arm, stack in stacks.items()} if first.device == "cuda" else None,
            watch=stopwatch_of(first.device, first.threads),
            seed=number,
        )


def plain_of(cell: Cell) -> Cell:
    """The cell of plain that ``cell`` is compared with."""
    return cell.but(block=baseline().name, block_options={}, start=None, width=cell.nominal_width)


def yardstick_step(plain: Cell, work: StackStep) -> YardstickStep:
    """The yard-stick's step for work like that of ``plain``: of its width and depth, on its input."""
    return YardstickStep(cell_family(plain).yardstick, plain.width, plain.depth, work.x, str(plain.phase))


def modules_for(cells: Iterable[Cell]) -> tuple[str, ...]:
    """The modules that register the blocks and families of ``cells``, which another process imports."""
    return modules_of(one for cell in cells for one in ((blocks, cell.block), (families, cell.family)))

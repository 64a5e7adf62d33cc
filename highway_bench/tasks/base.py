"""Task: what is measured. A task says all about itself, and turns a group of cells into their measurements.

What it says is data that others read: metrics with units and labels, the words of its cells' recipes, what a cell costs
and cannot be, and the section of the report that shows it. Nothing else in the package knows a task by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from highway_bench.cell import MODES, PHASES, Cell
from highway_bench.errors import USER_ERRORS, BadInput, near_names
from highway_bench.registry import Registry
from highway_bench.tasks.measurement import Metric, Outcome

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder
    from highway_bench.training.recipe import Word


class Skip(Exception):
    """Raised where a cell makes no sense; its message is the reason, and the row says ``skipped``."""


@dataclass(frozen=True)
class CellCost:
    """What measuring a cell takes, roughly: ``seconds`` on one CPU core, and ``bytes`` of memory, the process and its
    libraries aside."""

    seconds: float = 1.0
    bytes: int = 0


class Task(ABC):
    """What is measured: subclasses name their metrics and say how cells become measurements."""

    name: str
    version: str  # changes when the meaning of its values does
    metrics: tuple[Metric, ...]
    section: str = "further"  # of the report, by the name that it is registered under there
    alone: bool = False  # True: nothing else may run at the same time (timing)
    meter: bool = False  # True: values depend on the hardware and on torch, so those are in the digest
    coordinates: tuple[str, ...] = ("phase", "mode")  # of phase, mode, seed and dataset those that its cells have
    recipe_words: Mapping[str, Word] = MappingProxyType({})  # what its cells' recipes may say

    def metric(self, name: str) -> Metric:
        """The declared metric called ``name``; raises ``ValueError`` for any other."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise ValueError(f"task {self.name!r} gives the metric {name!r}, which it does not declare")

    def word(self, name: str) -> Word:
        """The recipe word called ``name``; raises ``BadInput`` with near ones for any other."""
        if name not in self.recipe_words:
            raise BadInput(f"task {self.name!r} has no recipe word {name!r}; {near_names(name, self.recipe_words)}")
        return self.recipe_words[name]

    def words_for(self, recipe: Mapping[str, Any], dataset: str | None) -> Mapping[str, Word]:
        """Those of ``recipe_words`` that mean something to cells of this recipe and data set; all of them by default.

        Only these may be put over a profile's recipe.
        """
        return self.recipe_words

    def check(self, cell: Cell) -> None:
        """Raise ``BadInput`` for what no run of ``cell`` can do, before anything is measured.

        By default: a word of its recipe that the task does not have, or a value that the word cannot have.
        """
        for name, value in cell.recipe.items():
            self.word(name).check(name, value)

    def cost(self, cell: Cell) -> CellCost:
        """What ``cell`` takes: for the plan and for the time left. Built from closed forms, for it is asked of every
        cell of a plan."""
        return CellCost()

    def timeout(self, cell: Cell) -> float:
        """Seconds after which a worker measuring ``cell`` is stopped."""
        return 300.0

    def group(self, cell: Cell) -> Hashable:
        """Cells with equal groups are measured together in one worker (paired timing); by default a cell is alone."""
        return cell.key

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        """Cells whose results ``resolve`` wants before this one can run (the trials of a search)."""
        return ()

    def resolve(self, cell: Cell, found: Mapping[Cell, Mapping[str, float | None]]) -> Cell:
        """The cell to run, given the scalar metrics of what it needs; rows keep the identity of ``cell`` itself.

        A needed cell that failed (crashed, out of time or memory) is not in ``found``; one that was skipped is, without
        metrics.
        """
        return cell

    @abstractmethod
    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        """Measure a group of cells: one outcome a cell, as soon as it is known; ``cell_by_cell`` does most of it.

        ``checkpoints`` is where a long measurement may store its state, and from where it goes on; most tasks ignore
        it.
        """


class Workload(Protocol):
    """A prepared step. ``step`` does one unit of work, synchronised at its end: the only thing timed."""

    @property
    def items(self) -> int:
        """Samples that a step processes."""

    @property
    def params(self) -> int:
        """Parameters of the network."""

    @property
    def flops_per_item(self) -> float | None:
        """FLOP of a step for one item, a multiply-add is two; ``None`` where unknown."""

    def step(self) -> None:
        """One unit of work, synchronised at its end."""

    def restore(self) -> None:
        """Undo what ``step`` changed (a training step moves the weights); never timed."""

    def close(self) -> None:
        """Give back what the workload holds."""


class StepTask(Task):
    """A task that measures one step. pytest-benchmark and asv time the step of the same workload with clocks of their
    own: shapes, seeds and synchronisation are the workload's, so that they cannot disagree on what was measured."""

    @abstractmethod
    def prepare(self, cell: Cell) -> Workload:
        """Build what ``cell`` measures; raises ``Skip`` where it makes no sense."""

    def check(self, cell: Cell) -> None:
        """As in every task; also a phase or a mode that no step has."""
        super().check(cell)
        check_step(cell)


def check_step(cell: Cell) -> None:
    """Raise ``BadInput`` for a phase or a mode that no step has."""
    for kind, name, known in (("phase", cell.phase, PHASES), ("mode", cell.mode, MODES)):
        if name not in known:
            raise BadInput(f"unknown {kind} {name!r}; {near_names(str(name), known)}")


def cell_by_cell(cells: Sequence[Cell], measure_cell: Callable[[Cell], Outcome]) -> Iterator[Outcome]:
    """The outcome of each cell, measured by itself; what it raises is this cell's own error."""
    for cell in cells:
        try:
            yield measure_cell(cell)
        except USER_ERRORS as error:  # the worker gives it a status and a row
            yield Outcome(cell, error=error)


tasks: Registry[Task] = Registry("task", package="highway_bench.tasks")


def register_task(cls: type[Task]) -> type[Task]:
    """Class decorator: put one instance of a task into the registry, under its ``name``."""
    tasks.register(cls.name, cls(), module=cls.__module__)
    return cls

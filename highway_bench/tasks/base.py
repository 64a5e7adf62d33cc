"""Task: what is measured. A task declares everything about itself, and turns a group of cells into their measurements.

The declarations are data that other packages read: metrics with units and labels, the words of its cells' recipes, the
cost of a cell, and the cells that it refuses. The store and the catalogue know no task by name; the grids of profiles,
the report's own tables, and the remark of a run on populations do.
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
from highway_bench.words import Word

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder


class Skip(Exception):
    """Raised for a cell that makes no sense. The message is the reason; the row's status is ``skipped``."""


@dataclass(frozen=True)
class CellCost:
    """Roughly what measuring a cell takes: ``seconds`` on one CPU core, and ``bytes`` of memory without those of the
    process and its libraries."""

    seconds: float = 1.0
    bytes: int = 0


class Task:
    """What is measured. Subclasses declare their metrics and implement ``measure_cell``, or ``measure`` for a group."""

    name: str
    version: str  # changes when the meaning of its values does
    metrics: tuple[Metric, ...]
    alone: bool = False  # True: nothing else may run at the same time (timing)
    with_baseline: bool = False  # True: a cell is measured next to the baseline, whose version its key has too
    meter: bool = False  # True: values depend on the hardware, so the key has the machine
    coordinates: tuple[str, ...] = ("phase", "mode")  # which of phase, mode, start, seed and dataset its cells have
    recipe_words: Mapping[str, Word] = MappingProxyType({})  # the words that its cells' recipes may have

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
        """The ``recipe_words`` that mean something for cells of this recipe and data set; by default all of them.

        Only these words may override a profile's recipe.
        """
        return self.recipe_words

    def check(self, cell: Cell) -> None:
        """Raise ``BadInput`` for a cell that no run can measure, before anything is measured.

        By default: where its recipe has a word that the task does not have, or a value that the word cannot have.
        """
        for name, value in cell.recipe.items():
            self.word(name).check(name, value)

    def cost(self, cell: Cell) -> CellCost:
        """What ``cell`` takes, for the plan and for the time left. A closed form: every cell of a plan calls it."""
        return CellCost()

    def timeout(self, cell: Cell) -> float:
        """Seconds after which a worker that measures ``cell`` is stopped."""
        return 300.0

    def group(self, cell: Cell) -> Hashable:
        """Cells of equal groups are measured together in one worker (paired timing). By default each cell is alone."""
        return cell.identity

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        """Cells whose results ``resolve`` needs before this one can run (the trials of a search)."""
        return ()

    def resolve(self, cell: Cell, results: Mapping[Cell, Mapping[str, float | None]]) -> Cell:
        """The cell to run, given the scalar metrics of the cells that it needs. Rows have the identity of ``cell``.

        ``results`` lacks a needed cell that failed (crashed, out of time or memory). A skipped one has no metrics in
        it.
        """
        return cell

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        """Measure a group of cells: one outcome a cell, as soon as it is known. By default each by ``measure_cell``.

        A long measurement may store its state in ``checkpoints``, and resumes from there. Most tasks ignore it.
        """
        return cell_by_cell(cells, self.measure_cell)

    def measure_cell(self, cell: Cell) -> Outcome:
        """The outcome of one cell, of tasks that measure each by itself."""
        raise NotImplementedError


class Workload(Protocol):
    """A prepared step. Only ``step`` is timed: one unit of work, synchronised at its end."""

    @property
    def items(self) -> int:
        """Samples that a step processes."""

    @property
    def params(self) -> int:
        """Parameters of the network."""

    @property
    def flops_per_item(self) -> float | None:
        """FLOP of a step for one item, two for a multiply-add; ``None`` where unknown."""

    def step(self) -> None:
        """One unit of work, synchronised at its end."""

    def restore(self) -> None:
        """Undo what ``step`` changed (a training step moves the weights). Never timed."""

    def close(self) -> None:
        """Release what the workload holds."""


class StepTask(Task, ABC):
    """A task that measures one step. pytest-benchmark and asv time the step of the same workload with their own clocks.

    Shapes, seeds and synchronisation belong to the workload, so the three cannot disagree on what was measured.
    """

    @abstractmethod
    def prepare(self, cell: Cell) -> Workload:
        """The workload of ``cell``; raises ``Skip`` where the cell makes no sense."""

    def check(self, cell: Cell) -> None:
        """As in every task; also raises ``BadInput`` for a phase or a mode that no step has."""
        super().check(cell)
        check_step(cell)


def check_step(cell: Cell) -> None:
    """Raise ``BadInput`` for a phase or a mode that no step has."""
    for kind, name, known in (("phase", cell.phase, PHASES), ("mode", cell.mode, MODES)):
        if name not in known:
            raise BadInput(f"unknown {kind} {name!r}; {near_names(str(name), known)}")


def cell_by_cell(cells: Sequence[Cell], measure_cell: Callable[[Cell], Outcome]) -> Iterator[Outcome]:
    """The outcome of each cell, measured by itself. An exception becomes the outcome of its cell alone."""
    for cell in cells:
        try:
            yield measure_cell(cell)
        except USER_ERRORS as error:  # the worker turns it into a status and a row
            yield Outcome(cell, error=error)


tasks: Registry[Task] = Registry("task", package="highway_bench.tasks")


def register_task(cls: type[Task]) -> type[Task]:
    """Class decorator: register one instance of a task under its ``name``."""
    tasks.register(cls.name, cls(), module=cls.__module__)
    return cls


def value_of(cell: Cell, word: str, default: Any) -> Any:
    """The value of ``word`` in the cell's recipe, or ``default`` where the recipe lacks it.

    Raises ``BadInput`` where the task has no such word, or the word cannot have this value.
    """
    if word not in cell.recipe:
        return default
    tasks.get(cell.task).word(word).check(word, cell.recipe[word])
    return cell.recipe[word]

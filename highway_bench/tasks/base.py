"""Task: what is measured. A task turns a cell into a workload, and a workload into measurements.

Three callers time the same workload: the command line through ``Task.measure``, pytest-benchmark and asv through
``Workload.step`` with a clock of their own. Shapes, seeds and synchronisation live in the workload, so that the
three cannot disagree on what was measured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS
from highway_bench.registry import Registry
from highway_bench.results.schema import Status

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder
    from highway_bench.training.recipe import Word

Better = Literal["lower", "higher", ""]


class Workload(Protocol):
    """A prepared measurement. ``step`` does one unit of work, synchronised at its end: the only thing timed."""

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


@dataclass(frozen=True)
class Metric:
    """A quantity that a task reports: its name, its unit and which direction is better."""

    name: str
    unit: str
    better: Better = ""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One metric's value. With ``samples``, ``value`` is their median and ``low``/``high`` their p10 and p90."""

    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    samples: Sequence[float] | None = None
    axis: str = ""
    index: float = 0.0
    status: Status = Status.OK
    message: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of one cell of a group: its measurements, or the error that it ended in."""

    cell: Cell
    measurements: Sequence[Measurement] = ()
    params: int | None = None
    flops_per_item: float | None = None
    error: BaseException | None = None


class Skip(Exception):
    """Raised by ``prepare`` where a cell makes no sense; its message is the reason, and the row says ``skipped``."""


W = TypeVar("W", bound=Workload)


class Task(ABC, Generic[W]):
    """What is measured: subclasses name their metrics and say how a cell becomes a workload and measurements."""

    name: str
    version: str
    metrics: tuple[Metric, ...]
    alone: bool = False  # True: nothing else may run beside it (timing)
    meter: bool = False  # True: values depend on the hardware and on torch, so those are in the digest
    coordinates: tuple[str, ...] = ("phase", "mode")  # of phase, mode, seed and dataset those that its cells have
    recipe_words: Mapping[str, Word] = MappingProxyType({})  # what its cells' recipes may say

    def metric(self, name: str) -> Metric:
        """The declared metric called ``name``; a measurement of any other is a bug."""
        return next(metric for metric in self.metrics if metric.name == name)

    def words_for(self, recipe: Mapping[str, Any], dataset: str | None) -> Mapping[str, Word]:
        """Those of ``recipe_words`` that mean something to cells of this recipe and data set; all of them by default.

        Only these may be put over a profile's recipe.
        """
        return self.recipe_words

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

    def at_once(self, cell: Cell) -> int:
        """Networks that a worker holds at once, at most, while it measures ``cell``'s group."""
        return 1

    def timeout(self, cell: Cell) -> float:
        """Seconds after which a worker measuring ``cell`` is stopped."""
        return 300.0

    def estimate(self, cell: Cell) -> float:
        """Seconds that ``cell`` takes, roughly: for the plan and for the time left."""
        return 1.0

    @abstractmethod
    def prepare(self, cell: Cell) -> W:
        """Build what ``cell`` measures; raises ``Skip`` where it makes no sense."""

    @abstractmethod
    def measure(self, work: W, cell: Cell) -> Iterable[Measurement]:
        """Measure a prepared cell."""

    def measure_group(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Measure a group, cell by cell, each cell's error its own; a task that pairs its cells overrides this."""
        for cell in cells:
            try:
                work = self.prepare(cell)
                try:
                    yield Outcome(cell, tuple(self.measure(work, cell)), work.params, work.flops_per_item)
                finally:
                    work.close()
            except USER_ERRORS as error:  # the worker gives it a status and a row
                yield Outcome(cell, error=error)

    def resume_group(self, cells: Sequence[Cell], kept: CheckpointFolder) -> Iterator[Outcome]:
        """As ``measure_group``, from where ``kept`` has the state of these cells; by default nothing is kept."""
        return self.measure_group(cells)


tasks: Registry[Task[Any]] = Registry("task", package="highway_bench.tasks")


def register_task(cls: type[Task[W]]) -> type[Task[W]]:
    """Class decorator: put one instance of a task into the registry, under its ``name``."""
    tasks.register(cls.name, cls(), place=cls.__module__)
    return cls

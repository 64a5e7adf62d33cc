"""Progress: the events of a run, and its remaining time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from highway_bench.cell import Cell
from highway_bench.execution.schedule import ScheduledCell
from highway_bench.results.schema import Status


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The run starts: ``cells`` in all, ``stored`` of them measured before (``other_sources`` of these with another
    source), ``resumed`` from a checkpoint, ``left`` the estimated seconds."""

    cells: int
    stored: int
    other_sources: int
    resumed: int
    left: float


@dataclass(frozen=True)
class Started:
    """A worker started these cells."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Finished:
    """A cell ended and is stored; ``done`` of ``cells`` have ended, ``left`` seconds remain."""

    cell: Cell
    status: Status
    message: str | None
    seconds: float
    done: int
    cells: int
    left: float


Event = Opened | Started | Finished


class TimeLeft:
    """Remaining seconds of a run: the tasks' estimates, corrected by the times of the cells measured so far."""

    def __init__(self, items: Iterable[ScheduledCell], workers: int) -> None:
        self._lanes: dict[str, int] = {}
        self._left: defaultdict[str, float] = defaultdict(float)
        self._seen: defaultdict[str, float] = defaultdict(float)
        self._taken: defaultdict[str, float] = defaultdict(float)
        cells: Counter[str] = Counter()
        for item in items:
            shared = not item.task.alone and item.ran.device == "cpu"  # as engines do; a GPU counts as one lane
            self._lanes[item.task.name] = max(1, workers // item.ran.threads) if shared else 1
            self._left[item.task.name] += item.cost.seconds
            cells[item.task.name] += 1
        self._average = {name: self._left[name] / count for name, count in cells.items()}

    def ended(self, item: ScheduledCell, seconds: float | None) -> None:
        """``item`` ended after ``seconds``; ``None`` where it did not run."""
        name = item.task.name
        self._left[name] -= item.cost.seconds
        if seconds is not None:
            self._seen[name] += item.cost.seconds
            self._taken[name] += seconds

    @property
    def seconds(self) -> float:
        total = 0.0
        for name, left in self._left.items():
            # One average cell with its estimated time counts too: the first measured cell must not decide alone.
            prior = self._average[name]
            pace = (self._taken[name] + prior) / (self._seen[name] + prior) if prior > 0 else 1.0
            total += max(left, 0.0) * pace / self._lanes[name]
        return total

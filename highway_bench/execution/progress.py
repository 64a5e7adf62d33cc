"""Progress: what a run tells whoever watches it, and the time it has left."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from highway_bench.cell import Cell
from highway_bench.execution.backlog import Item
from highway_bench.results.schema import Status


@dataclass(frozen=True, kw_only=True)
class Opened:
    """The run knows what to do: ``cells`` in all, ``stored`` of them done before, ``resumed`` that go on from a
    checkpoint, ``left`` seconds by estimate."""

    cells: int
    stored: int
    resumed: int
    left: float


@dataclass(frozen=True)
class Started:
    """A worker took these cells."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Finished:
    """A cell ended and is in the store; ``done`` of ``cells`` have, ``left`` seconds remain."""

    cell: Cell
    status: Status
    message: str | None
    seconds: float
    done: int
    cells: int
    left: float


Event = Opened | Started | Finished


class TimeLeft:
    """Seconds that a run still takes: the tasks' estimates, corrected by what their cells have taken so far."""

    def __init__(self, items: Iterable[Item], workers: int) -> None:
        self._lanes: dict[str, int] = {}
        self._left: defaultdict[str, float] = defaultdict(float)
        self._seen: defaultdict[str, float] = defaultdict(float)
        self._taken: defaultdict[str, float] = defaultdict(float)
        cells: Counter[str] = Counter()
        for item in items:
            self._lanes[item.task.name] = 1 if item.task.alone or item.ran.device != "cpu" else workers  # as engines do
            self._left[item.task.name] += item.cost.seconds
            cells[item.task.name] += 1
        self._average = {name: self._left[name] / count for name, count in cells.items()}

    def ended(self, item: Item, seconds: float | None) -> None:
        """``item`` is done, in ``seconds``; ``None`` where it did not run."""
        name = item.task.name
        self._left[name] -= item.cost.seconds
        if seconds is not None:
            self._seen[name] += item.cost.seconds
            self._taken[name] += seconds

    @property
    def seconds(self) -> float:
        total = 0.0
        for name, left in self._left.items():
            # One average cell as estimated weighs in, so that the first one seen does not decide alone.
            prior = self._average[name]
            pace = (self._taken[name] + prior) / (self._seen[name] + prior) if prior > 0 else 1.0
            total += max(left, 0.0) * pace / self._lanes[name]
        return total

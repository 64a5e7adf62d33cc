"""A task that does nothing, for timing what the runner itself costs."""

from __future__ import annotations

from collections.abc import Iterable

from highway_bench.cell import Cell
from highway_bench.tasks import Measurement, Metric, Task, register_task


class IdleWork:
    """A workload of no work."""

    items = 1
    params = 0
    flops_per_item = None

    def step(self) -> None:
        """Nothing."""

    def restore(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


@register_task
class Idle(Task[IdleWork]):
    """Gives one value at once."""

    name = "idle"
    version = "1"
    metrics = (Metric("nothing", "1"),)

    def prepare(self, cell: Cell) -> IdleWork:
        return IdleWork()

    def measure(self, work: IdleWork, cell: Cell) -> Iterable[Measurement]:
        yield Measurement(metric="nothing", value=float(cell.seed))

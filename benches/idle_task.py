"""A task that does nothing, to time the runner itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from highway_bench.cell import Cell
from highway_bench.tasks import Measurement, Metric, Outcome, Task, register_task

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder


@register_task
class Idle(Task):
    """Gives one value immediately."""

    name = "idle"
    version = "1"
    metrics = (Metric("nothing", "1"),)

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        for cell in cells:
            yield Outcome(cell, [Measurement(metric="nothing", value=float(cell.seed))])

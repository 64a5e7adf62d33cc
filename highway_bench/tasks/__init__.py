"""Tasks: what is measured. One task a file; ``tasks`` is the registry."""

from highway_bench.tasks.base import CellCost, Skip, StepTask, Task, Workload, cell_by_cell, register_task, tasks
from highway_bench.tasks.measurement import Measurement, Metric, Outcome

__all__ = [
    "CellCost",
    "Measurement",
    "Metric",
    "Outcome",
    "Skip",
    "StepTask",
    "Task",
    "Workload",
    "cell_by_cell",
    "register_task",
    "tasks",
]

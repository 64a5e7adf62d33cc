"""Tasks: what is measured. One task a file; ``tasks`` is the registry."""

from highway_bench.tasks.base import Measurement, Metric, Outcome, Skip, Task, Workload, register_task, tasks

__all__ = ["Measurement", "Metric", "Outcome", "Skip", "Task", "Workload", "register_task", "tasks"]

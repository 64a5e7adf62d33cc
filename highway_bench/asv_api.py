"""The API for asv: all functions that the history's benchmarks call. It is frozen; until 0.2 the module was ``door``.

asv runs the current benchmarks against older commits, so these functions must not change. ``prepare``, which the first
commits lack, is called first; ``workload`` builds a step to time, and ``measured`` returns measured values. Cells are
given by plain values. A field that a commit does not have raises ``TypeError``; a block that it does not have raises
``UnknownName`` (a ``KeyError``). ``version`` is the version of a task, which changes with the meaning of its values.
"""

from __future__ import annotations

import os
from typing import Any

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.matching import matched_width
from highway_bench.measure.precision import ieee_float32
from highway_bench.tasks import StepTask, Workload, tasks


def cell(task: str, block: str, family: str, depth: int, nominal_width: int, *, snap: int = 1, **fields: Any) -> Cell:
    """The cell of these coordinates, at the width that gives ``block`` plain's parameters a layer."""
    family_options = fields.get("family_options", {})
    match = fields.get("match", "params")
    built = make_family(family, **family_options)
    width = matched_width(blocks.get(block), built, nominal_width, match, snap=snap)
    return Cell(task=task, block=block, family=family, depth=depth, nominal_width=nominal_width, width=width, **fields)


def workload(task: str, block: str, family: str, depth: int, nominal_width: int, **fields: Any) -> Workload:
    """The prepared workload of these coordinates: time its ``step``, and call its ``restore`` untimed after each step.

    Raises ``BadInput`` for a task that does not time a step.
    """
    chosen = tasks.get(task)
    if not isinstance(chosen, StepTask):
        raise BadInput(f"task {task!r} has no step to time")
    return chosen.prepare(cell(task, block, family, depth, nominal_width, **fields))


def measured(
    task: str, block: str, family: str, depth: int, nominal_width: int, **fields: Any
) -> dict[str, float | None]:
    """The scalar metrics of these coordinates, by name. An error of the measurement is raised.

    Steps are timed in this process alone.
    """
    if task == "throughput":
        fields["recipe"] = {"processes": 1, "limit": 0, **fields.get("recipe", {})}
    (outcome,) = tasks.get(task).measure([cell(task, block, family, depth, nominal_width, **fields)])
    if outcome.error is not None:
        raise outcome.error
    return {one.metric: one.value for one in outcome.measurements if not one.axis}


def prepare() -> None:
    """Prepare the process as a worker does. Call it once, before anything else."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first product, whichever task runs it
    ieee_float32()


def version(task: str) -> str:
    """The task's version: it changes when the meaning of its values does."""
    return str(tasks.get(task).version)

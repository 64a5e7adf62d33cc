"""Costs: the step time and the memory of each block, relative to pre-norm's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from highway_bench.cell import Cell
from highway_bench.frames.cells import ONE_PROCESS
from highway_bench.measure.statistics import ratio_over_processes
from highway_bench.report.columns import NOT_TIMED, is_decided, quoted
from highway_bench.studies.advice.budget import TimingPlan
from highway_bench.studies.advice.measured import MeasuredCells, TimedSteps
from highway_bench.studies.advice.request import AdviceRequest
from highway_bench.studies.decide.candidate import REFERENCE
from highway_bench.tasks.from_cell import positions_of

PHASE = "train-step"
PRECISION = 0.05


@dataclass(frozen=True)
class RelativeCost:
    """A block's step time over pre-norm's (``ratio``, with its interval over processes; NaN where not timed) and its
    bytes a layer that are saved for the backward pass."""

    block: str
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    saved: float = math.nan

    @property
    def decided(self) -> bool:
        """Whether the ratio is known well enough to be stated."""
        return is_decided(self.ratio, self.low, self.high)

    @property
    def likely(self) -> float:
        """The ratio for predictions: 1 where it is not known."""
        return 1.0 if math.isnan(self.ratio) else self.ratio

    def __str__(self) -> str:
        return quoted(self.ratio, self.low, self.high, NOT_TIMED if math.isnan(self.ratio) else ONE_PROCESS)

    @property
    def words(self) -> str:
        """The ratio for a sentence: ``step time 1.54 [1.50, 1.58] × pre-norm's``, or why there is none."""
        if math.isfinite(self.low):
            return f"step time {self} × {REFERENCE}'s"
        return f"step {NOT_TIMED}" if math.isnan(self.ratio) else f"step timed in {ONE_PROCESS} (no interval)"


def cost_cells(request: AdviceRequest, blocks: Sequence[str], plan: TimingPlan) -> dict[str, list[Cell]]:
    """The cells that give the costs of ``blocks``, by task."""
    steps = positions_of(request.family, request.template) if request.family.kind == "sequence" else None
    template = request.template.but(dataset=None, recipe={}, depth=plan.depth, seq_len=steps, phase=PHASE)
    recipe = {
        "seconds": 0,
        "samples": plan.samples,
        "processes": plan.processes,
        "precision": PRECISION,
        "limit": plan.limit,
    }
    each = [template.but(block=block, width=request.widths[block]) for block in blocks]
    return {
        "throughput": [cell.but(task="throughput", recipe=recipe) for cell in each],
        "memory": [cell.but(task="memory") for cell in each],
    }


def block_costs(cells: dict[str, list[Cell]], measured: MeasuredCells) -> dict[str, RelativeCost]:
    """The costs of measured blocks."""
    timed = {cell.block: measured.steps(cell) for cell in cells["throughput"]}
    costs = {}
    for cell in cells["memory"]:
        saved = measured.value(cell, "saved_per_layer")
        ratio = step_ratio(timed.get(cell.block), timed.get(REFERENCE))
        costs[cell.block] = RelativeCost(cell.block, *ratio, saved=math.nan if saved is None else saved)
    return costs


def step_ratio(steps: TimedSteps | None, reference: TimedSteps | None) -> tuple[float, float, float]:
    """The ratio of two blocks' steps with its interval; NaN where they were not timed in the same rounds."""
    if steps is None or reference is None or steps.plain != reference.plain:
        return math.nan, math.nan, math.nan
    if steps == reference:
        return 1.0, 1.0, 1.0
    estimate = ratio_over_processes(steps.seconds, reference.seconds, steps.process, wall=steps.wall)
    return estimate.value, estimate.low, estimate.high

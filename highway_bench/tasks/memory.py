"""Memory: the bytes of one step of a stack, by purpose.

On a CPU the meter counts live tensors, not the process's pages, so values are exact and repeatable. On CUDA it counts
the bytes requested of the allocator.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from highway_bench.cell import Cell
from highway_bench.measure.memory import measure_memory
from highway_bench.tasks._step import StackStep
from highway_bench.tasks.base import CellCost, Skip, StepTask, register_task
from highway_bench.tasks.from_cell import BUDGET_MISMATCH, budget_mismatch, network_bytes
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.tasks.modes import EXECUTION_MODES


@register_task
class Memory(StepTask):
    """Bytes of a training step: parameters, gradients, optimiser state, saved activations, and the peak."""

    name = "memory"
    version = "2"
    meter = True
    metrics = (
        Metric("parameter_bytes", "B", "lower", label="weights"),
        Metric("gradients", "B", "lower"),
        Metric("optimiser_state", "B", "lower"),
        Metric("saved_activations", "B", "lower", label="saved for the backward pass"),
        Metric("saved_per_layer", "B", "lower", label="saved per layer"),
        Metric("peak", "B", "lower"),
        BUDGET_MISMATCH,
    )

    def cost(self, cell: Cell) -> CellCost:
        # The tracker's own time grows with the square of the number of modules.
        return CellCost(0.05 + 2.5e-4 * cell.depth**2, network_bytes(cell))

    def prepare(self, cell: Cell) -> StackStep:
        if not EXECUTION_MODES[cell.mode].allocates:
            raise Skip("a replayed CUDA graph allocates nothing; its memory is that of eager mode")
        return StackStep(cell)

    def measure_cell(self, cell: Cell) -> Outcome:
        """The bytes of one cell's step."""
        work = self.prepare(cell)
        return Outcome(cell, tuple(self.measurements(work, cell)), work.params, work.flops_per_item)

    def measurements(self, work: StackStep, cell: Cell) -> Iterator[Measurement]:
        """The bytes of a step of ``work``, by purpose."""
        backward = cell.phase != "forward"

        def forward() -> Tensor:
            y = work.call(work.x)
            return (y * work.cotangent).sum() if backward else y

        report = measure_memory(
            work.network,
            forward,
            optimiser=work.optimiser if cell.phase == "train-step" else None,
            inputs=(work.x, work.cotangent) if backward else (work.x,),
            backward=backward,
            compiled=EXECUTION_MODES[cell.mode].compiles,
        )
        work.restore()
        remark = f"meter: {report.meter}"
        for name in ("parameter_bytes", "gradients", "optimiser_state", "saved_activations", "peak"):
            yield Measurement(metric=name, value=float(getattr(report, name)), message=remark)
        yield Measurement(metric="saved_per_layer", value=report.saved_activations / cell.depth, message=remark)
        yield budget_mismatch(cell)

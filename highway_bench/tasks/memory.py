"""Memory: the bytes of one step of a stack, by what they are for.

Exact and repeatable on a CPU, where live tensors are counted, not the process's pages; on CUDA the bytes requested of
the allocator are.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from highway_bench.cell import Cell
from highway_bench.measure.memory import measure_memory
from highway_bench.tasks._step import StackStep
from highway_bench.tasks.base import Measurement, Metric, Skip, Task, register_task
from highway_bench.tasks.from_cell import budget_mismatch


@register_task
class Memory(Task[StackStep]):
    """Bytes of a training step: parameters, gradients, optimiser state, saved activations, and the peak."""

    name = "memory"
    version = "2"
    meter = True
    metrics = (
        Metric("parameters", "B", "lower"),
        Metric("gradients", "B", "lower"),
        Metric("optimiser_state", "B", "lower"),
        Metric("saved_activations", "B", "lower"),
        Metric("saved_per_layer", "B", "lower"),
        Metric("peak", "B", "lower"),
        Metric("budget_mismatch", "1"),
    )

    def estimate(self, cell: Cell) -> float:
        return 0.05 + 2.5e-4 * cell.depth**2  # the tracker's bookkeeping grows with the square of the modules

    def prepare(self, cell: Cell) -> StackStep:
        if cell.mode == "cudagraph":
            raise Skip("a replayed graph allocates nothing; its memory is that of eager mode")
        return StackStep(cell)

    def measure(self, work: StackStep, cell: Cell) -> Iterable[Measurement]:
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
            compiled=cell.mode == "compile",
        )
        work.restore()
        remark = f"meter: {report.meter}"
        for name in ("parameters", "gradients", "optimiser_state", "saved_activations", "peak"):
            yield Measurement(metric=name, value=float(getattr(report, name)), message=remark)
        yield Measurement(metric="saved_per_layer", value=report.saved_activations / cell.depth, message=remark)
        yield budget_mismatch(cell)

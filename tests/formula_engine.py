"""An engine whose losses are a formula, for studies whose next cells follow from them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping

from highway_bench.cell import Cell
from highway_bench.execution.job import Began, CellResult, Ended, Job
from highway_bench.provenance import identity
from highway_bench.results import Status
from highway_bench.tasks.measurement import Measurement
from tests.inline_engine import FakeEngine

SUCCESS = 0.2
LOSSES = {"pre-norm": 0.1, "highway": 0.12, "my-gate": 0.12, "plain": 2.3}


class FormulaEngine(FakeEngine):
    """Trains nothing: a cell's loss is that of its block in ``losses``, lowest at the rate 0.1, × its seed's noise.

    Cells of the block ``fails`` fail. A step takes ``layer_seconds`` for each layer.
    """

    def __init__(
        self, losses: Mapping[str, float] = LOSSES, fails: str = "", layer_seconds: float | None = None
    ) -> None:
        self.losses = losses
        self.fails = fails
        self.layer_seconds = layer_seconds
        self.cells = []
        self.plugins = set()

    def loss(self, cell: Cell) -> float:
        noise = random.Random(f"{cell.block} {cell.seed} {cell.depth}").gauss(0.0, 0.02)
        return self.losses[cell.block] * math.exp(noise + math.log10(cell.recipe["rate"] / 0.1) ** 2)

    def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
        for job in jobs:
            yield Began(job)
            self.plugins.update(job.plugins)
            for index, cell in enumerate(job.cells):
                self.cells.append(cell)
                yield Ended(job, self.failed(index) if cell.block == self.fails else self.result(index, cell))

    def result(self, index: int, cell: Cell) -> CellResult:
        loss = self.loss(cell)
        status = Status.DIVERGED if math.isinf(loss) else Status.OK if loss <= SUCCESS else Status.STALLED
        values = {"final_loss": None if math.isinf(loss) else loss, "success": float(status == Status.OK)}
        values |= {} if self.layer_seconds is None else {"step_seconds": self.layer_seconds * cell.depth}
        measurements = tuple(Measurement(metric=name, value=value, status=status) for name, value in values.items())
        return CellResult(index=index, status=status, measurements=measurements, identity=identity("cpu"))

    def failed(self, index: int) -> CellResult:
        return CellResult(index=index, status=Status.FAILED, message="out of ideas", identity=identity("cpu"))

"""Before training: whether networks fit memory, what a step of each block costs next to pre-norm's, and whether signal
and gradient of each connection are in range at the start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.frames.cells import ONE_PROCESS
from highway_bench.frames.propagation import EXPLODES, IN_RANGE, MIXED, VANISHES
from highway_bench.measure.paired import UNKNOWN
from highway_bench.measure.statistics import IntervalEstimate, ratio_over_processes
from highway_bench.provenance.free_memory import PROCESS_BYTES, gib, usable_bytes
from highway_bench.report.columns import NOT_TIMED, is_decided, quoted
from highway_bench.studies.advice.budget import TimingPlan
from highway_bench.studies.advice.measured import MeasuredCells
from highway_bench.studies.advice.request import AdviceRequest, Connection
from highway_bench.studies.decide.candidate import REFERENCE
from highway_bench.tasks.predicted_costs import PeakByDepth, peak_by_depth

PHASE: Final = "train-step"
PRECISION: Final = 0.05
WAYS: Final = ("signal", "gradient")
SEEDS: Final = (0, 1)  # of the starts
ITEMS: Final = 16
CARRIED: Final = ("dataset", "layout")  # words of a training's recipe that its start needs too
ALWAYS: Final = "budget_mismatch"
"""A metric of every start that was measured."""


class Fit(NamedTuple):
    """The bytes of a training step of pre-norm, and how many workers can train at the same time."""

    bytes: int
    workers: int


def fit(request: AdviceRequest, workers: int) -> Fit:
    """The fit of ``request``; raises ``BadInput`` for a depth that does not fit memory."""
    need = peak_by_depth(request.run(request.connections[0], 2, request.first_rates[-1], 0))
    return Fit(need.at(request.depth), workers_that_fit(need, request.depth, workers, request.device))


def workers_that_fit(need: PeakByDepth, depth: int, workers: int, device: str) -> int:
    """How many of ``workers`` processes can train networks of ``depth`` at the same time.

    Raises ``BadInput``, with the number, where not one can.
    """
    workers = 1 if device.startswith("cuda") else workers  # they would share it
    usable = usable_bytes(device)
    available = usable - PROCESS_BYTES
    if need.at(depth) > available:
        raise BadInput(
            f"depth {depth:,} does not fit memory: a training step of pre-norm needs about {gib(need.at(depth))}, and "
            f"{gib(available)} may be used; depth {need.depth_in(available):,} would fit memory"
        )
    return min(workers, usable // (need.at(depth) + PROCESS_BYTES))


class Cost(NamedTuple):
    """A block's ``step`` time over pre-norm's, with its interval over processes (NaN where not timed), and its bytes a
    layer that are ``saved`` for the backward pass."""

    step: IntervalEstimate = UNKNOWN
    saved: float = math.nan

    @property
    def decided(self) -> bool:
        """Whether the ratio is known well enough to be stated."""
        return is_decided(self.step.value, self.step.low, self.step.high)

    @property
    def ratio(self) -> str:
        """The ratio with its interval as text: ``1.54 [1.50, 1.58]``, or why there is none."""
        value, low, high = self.step.value, self.step.low, self.step.high
        return quoted(value, low, high, NOT_TIMED if math.isnan(value) else ONE_PROCESS)


def cost_cells(request: AdviceRequest, plan: TimingPlan) -> dict[str, list[Cell]]:
    """The cells that give the costs of the blocks of ``request``, by task."""
    template = request.untrained.but(depth=plan.depth, phase=PHASE)
    recipe = {
        "seconds": 0,
        "samples": plan.samples,
        "processes": plan.processes,
        "precision": PRECISION,
        "limit": plan.limit,
    }
    each = [template.but(block=block, width=width) for block, width in request.widths.items()]
    return {
        "throughput": [cell.but(task="throughput", recipe=recipe) for cell in each],
        "memory": [cell.but(task="memory") for cell in each],
    }


def block_costs(cells: Mapping[str, Sequence[Cell]], measured: MeasuredCells) -> dict[str, Cost]:
    """The costs of measured blocks."""
    timed = {cell.block: measured.steps(cell) for cell in cells["throughput"]}
    saved = {cell.block: measured.value(cell, "saved_per_layer") for cell in cells["memory"]}
    return {
        block: Cost(step_ratio(timed[block], timed[REFERENCE]), math.nan if size is None else size)
        for block, size in saved.items()
    }


def step_ratio(steps: Mapping[str, Any], reference: Mapping[str, Any]) -> IntervalEstimate:
    """The ratio of two blocks' timed steps (see ``MeasuredCells.steps``); unknown where they were not timed in the same
    rounds."""
    if not steps or not reference or steps["plain"] != reference["plain"]:
        return UNKNOWN
    if steps == reference:
        return IntervalEstimate(1.0, 1.0, 1.0, len(set(steps["process"])))
    return ratio_over_processes(steps["own"], reference["own"], steps["process"], wall=steps["wall"])


def start_cells(request: AdviceRequest, connection: Connection) -> list[Cell]:
    """The cells that measure the start of a connection's trainings, one a seed."""
    training = request.run(connection, 1, request.first_rates[0], 0)
    words = {word: value for word, value in training.recipe.items() if word in CARRIED}
    start = training.but(
        task="propagation",
        batch_size=min(ITEMS, training.batch_size),
        dtype="float64",
        recipe={"gain": 1.0, **words},
    )
    return [start.but(seed=seed) for seed in SEEDS]


def at_start(cells: Sequence[Cell], measured: MeasuredCells) -> str | None:
    """Whether the starts of ``cells`` are ``in range``, or which of signal and gradient is not, or is ``mixed`` over
    seeds; ``None`` where none was measured."""

    def verdict(cell: Cell, way: str) -> str:
        outside = (word for word in (EXPLODES, VANISHES) if measured.value(cell, f"{way}_{word}_at") is not None)
        return next(outside, IN_RANGE)

    ended = [cell for cell in cells if measured.value(cell, ALWAYS) is not None]
    found = {way: {verdict(cell, way) for cell in ended} for way in WAYS}
    words = {way: verdicts.pop() if len(verdicts) == 1 else MIXED for way, verdicts in found.items()}
    outside = [f"{way} {word}" for way, word in words.items() if word != IN_RANGE]
    return (", ".join(outside) or IN_RANGE) if ended else None

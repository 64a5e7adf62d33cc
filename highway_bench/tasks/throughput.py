"""Throughput: how long a step of a stack takes, and how near that is to the device's roofline.

Cells that differ only in block or mode are timed together. Their samples are taken in turn, so that a disturbance
affects all of them and ratios are paired.

The floor of a step is the larger of two times: its FLOP at the device's measured rate of matrix products or of
convolutions, whichever is faster, and its least bytes at the measured copy rate. ``slowdown`` is time over floor, and
``roofline_share`` is its inverse. Cached data, convolutions by Winograd's algorithm, or a roofline that was measured on
a busy device can make a step faster than its floor; both metrics are then empty.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch._dynamo.utils import counters
from torch._inductor import config as inductor_config

from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.matching import yardstick
from highway_bench.measure.clock import Budget, first_step, sample_interleaved
from highway_bench.measure.roofline import measure_roofline
from highway_bench.measure.statistics import Array
from highway_bench.results.schema import UNPAIRED
from highway_bench.tasks._step import StackStep
from highway_bench.tasks.base import CellCost, Skip, StepTask, register_task, value_of
from highway_bench.tasks.from_cell import BUDGET_MISMATCH, TORCH_DTYPES, budget_mismatch, cell_dtype
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.tasks.modes import EXECUTION_MODES
from highway_bench.tasks.network_bytes import network_bytes
from highway_bench.words import NOT_NEGATIVE, Word, whole

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder

PREPARED_ALONE = f"{UNPAIRED}it could not be prepared together with the others of its group"
LARGEST_SHARE = 1.05  # of the roofline: noise of the roofline explains a share up to this
RATES = ("matmul_rate", "conv_rate", "copy_rate")  # of the device, see Roofline


class NotCompiled(RuntimeError):
    """A compiled cell ran eagerly: its time would be mistaken for that of a compiled step."""


@register_task
class Throughput(StepTask):
    """Seconds of a step, forward, with backward, or with the update, and its share of the measured roofline."""

    name = "throughput"
    version = "2"  # 2: the floor takes the faster of products and convolutions, and is left out where steps are faster
    section = "throughput"
    metrics = (
        Metric("step_time", "s", "lower"),
        Metric("step_time_p99", "s", "lower", label="p99"),
        Metric("throughput", "sample/s", "higher"),
        Metric("flop_rate", "FLOP/s", "higher", label="FLOP rate"),
        Metric("roofline_share", "1", "higher", label="of roofline"),
        Metric("slowdown", "1", "lower", label="time ÷ floor"),
        Metric("first_step", "s", "lower"),
        Metric("compile_time", "s", "lower", label="compile"),
        Metric("graph_breaks", "1", "lower"),
        Metric("matmul_rate", "FLOP/s", "higher", label="matrix products"),
        Metric("conv_rate", "FLOP/s", "higher", label="convolutions"),
        Metric("copy_rate", "B/s", "higher", label="copies"),
        BUDGET_MISMATCH,
    )
    alone = True
    meter = True
    recipe_words: Mapping[str, Word] = {
        "seconds": NOT_NEGATIVE.meaning("Minimum sampling time per cell, in seconds."),
        "samples": whole(1).meaning("Minimum number of samples per cell."),
    }

    def group(self, cell: Cell) -> Hashable:
        return cell.but(block="", block_options={}, width=0, mode="eager").key

    def timeout(self, cell: Cell) -> float:
        return 60.0 + (300.0 if EXECUTION_MODES[cell.mode].compiles else 0.0) + 10.0 * self.cost(cell).seconds

    def cost(self, cell: Cell) -> CellCost:
        compiling = 2.0 * cell.depth if EXECUTION_MODES[cell.mode].compiles else 0.0
        return CellCost(0.1 + 1.5 * budget_of(cell).min_seconds + compiling, network_bytes(cell))

    def prepare(self, cell: Cell) -> StackStep:
        return StackStep(cell)

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        """Time the group's cells in turn. A cell that cannot be prepared is dropped, and the others stay paired.

        A dropped cell is tried again by itself after the others are released, because it may only have lacked their
        memory. Its rows then say that it was not paired.
        """
        measure_rooflines(cells)  # first, so that no cell's first step includes the process's lazy set-up
        works: dict[Cell, StackStep] = {}
        first: dict[Cell, tuple[float, int]] = {}
        dropped: list[Cell] = []
        for cell in cells:
            try:
                works[cell], first[cell] = self._begin(cell)
            except USER_ERRORS as error:  # the worker turns it into a status and a row
                if len(cells) == 1 or isinstance(error, Skip | BadInput):
                    yield Outcome(cell, error=error)
                else:
                    dropped.append(cell)
        if works:
            samples = sample_interleaved(
                {cell: work.step for cell, work in works.items()},
                budget_of(cells[0], rounds_of=len(works)),
                restore={cell: work.restore for cell, work in works.items()},
            )
            for cell, work in works.items():
                measurements = step_measurements(work, cell, samples[cell], *first[cell])
                yield Outcome(cell, measurements, work.params, work.flops_per_item)
            works.clear()
            del work
        for cell in dropped:
            for outcome in self.measure([cell]):
                yield replace(outcome, measurements=[one.remarked(PREPARED_ALONE) for one in outcome.measurements])

    def _begin(self, cell: Cell) -> tuple[StackStep, tuple[float, int]]:
        """The cell's workload after its first step, with that step's seconds and graph breaks."""
        work = self.prepare(cell)
        return work, measure_first_step(work)


def budget_of(cell: Cell, *, rounds_of: int = 1) -> Budget:
    """How long to sample, from the cell's recipe: at least ``samples`` rounds, and at least ``seconds`` for each of the
    ``rounds_of`` cells of a round."""
    seconds = float(value_of(cell, "seconds", 0.5))
    return Budget(
        min_samples=value_of(cell, "samples", 20),
        min_seconds=seconds * rounds_of,
        warmup_samples=2,
        warmup_seconds=min(0.1, seconds / 5) * rounds_of,
        max_seconds=(10.0 + 5.0 * seconds) * rounds_of,
    )


def measure_rooflines(cells: Sequence[Cell]) -> None:
    """Measure the rooflines of the cells' devices and dtypes, once a process."""
    for device, dtype in {(cell.device, cell.dtype): cell for cell in cells}:
        if device in ("cpu", "cuda") and dtype in TORCH_DTYPES and (device == "cpu" or torch.cuda.is_available()):
            measure_roofline(device, TORCH_DTYPES[dtype], torch.get_num_threads())


def measure_first_step(work: StackStep) -> tuple[float, int]:
    """Seconds of the first step, and graph breaks; raises ``NotCompiled`` where a compiled cell ran eagerly.

    Compilers' caches on disk are off, so the time is that of a fresh machine. A throw-away network runs first, so the
    time does not include what a process sets up once (compilers, kernels, allocators).
    """
    cell = work.cell
    other = throw_away_cell(cell)
    if other.key not in _set_up:
        _first_step(StackStep(other))
        _set_up.add(other.key)
    counters.clear()
    seconds = _first_step(work)
    if EXECUTION_MODES[cell.mode].compiles and not counters["stats"]["unique_graphs"]:
        raise NotCompiled("torch.compile made no graph; the step ran eagerly")
    return seconds, sum(counters["graph_break"].values())


def throw_away_cell(cell: Cell) -> Cell:
    """The cell of one layer whose first step sets up a process for the first step of ``cell``.

    It has the same block, because a block's own kernels are loaded at its first step. In a mode that compiles it has
    the yard-stick's block, so there is one a family: it sets up the compilers, and one for each block would take
    seconds and change little.
    """
    one = cell.but(depth=1, seed=0, recipe={})
    if not EXECUTION_MODES[cell.mode].compiles:
        return one
    return one.but(block=yardstick().name, block_options={}, width=cell.nominal_width)


_set_up: set[str] = set()  # throw-away cells that this process has run


def _first_step(work: StackStep) -> float:
    with inductor_config.patch(force_disable_caches=EXECUTION_MODES[work.cell.mode].compiles):
        return first_step(work.step, restore=work.restore)


def step_measurements(
    work: StackStep, cell: Cell, samples: Sequence[float], first: float, breaks: int
) -> list[Measurement]:
    """A cell's measurements from its samples, in seconds and in the order they were taken."""
    flops = work.flops_per_item * work.items
    roofline = measure_roofline(cell.device, cell_dtype(cell), torch.get_num_threads())
    floor = roofline.floor(flops, work.least_bytes())
    times = np.asarray(samples)
    least = budget_of(cell).min_samples
    cut = f"cut short by its time limit: {len(samples)} of {least} samples" if len(samples) < least else None
    low, middle, high = (float(value) for value in np.percentile(times, [10, 50, 90]))
    measured = [
        Measurement(metric="step_time", value=middle, low=low, high=high, samples=list(samples), message=cut),
        Measurement(metric="step_time_p99", value=float(np.percentile(times, 99))),
        rate("throughput", work.items, times),
        rate("flop_rate", flops, times),
        *against_floor(floor, times),
        Measurement(metric="first_step", value=first),
        *(Measurement(metric=name, value=getattr(roofline, name)) for name in RATES),
        budget_mismatch(cell),
    ]
    if EXECUTION_MODES[cell.mode].compiles:
        measured += [
            Measurement(metric="compile_time", value=max(0.0, first - middle)),
            Measurement(metric="graph_breaks", value=float(breaks)),
        ]
    return measured


def rate(metric: str, amount: float, times: Array) -> Measurement:
    """``amount`` a second: median, p10 and p90 over steps that took ``times`` seconds."""
    low, middle, high = (float(value) for value in amount / np.percentile(times, [90, 50, 10]))
    return Measurement(metric=metric, value=middle, low=low, high=high)


def against_floor(floor: float, times: Array) -> list[Measurement]:
    """``roofline_share`` and ``slowdown`` of steps that took ``times`` seconds.

    Both are empty, with the reason, where a tenth of the steps were faster than the floor. Other work on the machine
    can only make a step slower, so the floor is then wrong for all steps.
    """
    share = rate("roofline_share", floor, times)
    low, middle, high = (float(value) for value in np.percentile(times, [10, 50, 90]) / floor)
    slowdown = Measurement(metric="slowdown", value=middle, low=low, high=high)
    if 1 / low <= LARGEST_SHARE:
        return [share, slowdown]
    reason = (
        f"a tenth of the steps took at most {low:.3g} of their floor: cached data, fewer FLOP than counted, or a "
        "roofline that was measured on a busy device"
    )
    return [Measurement(metric=one.metric, value=None, message=reason) for one in (share, slowdown)]

"""Throughput: how long a step of a stack takes, and how near that is to the device's roofline.

Cells that differ only in block, start or mode are timed together with plain and a yard-stick (``_timing``): in turn,
so that a disturbance affects all of them, and in several processes, which the interval of a ratio covers. Each cell
stores the samples of plain and of the yard-stick that it was timed with, so its ratio needs no other cell.

A step in one thread on a CPU is pinned to a core, and its time leaves out the time in which it waited for that core.
The C library's allocator keeps freed memory, so that no step pays for the kernel's (see ``measure.processes``).
With several threads, or on a GPU, disturbed rounds are left out.

On a GPU a step has two times: ``step_time``, the wall time with a synchronisation at its end, and ``gpu_time``, the
time between two events, without that of launching kernels (see ``measure.gpu_watch``).

The floor of a step is the larger of two times: its FLOP at the device's measured rate of matrix products or of
convolutions, whichever is faster, and its least bytes at the measured copy rate. ``slowdown`` is time over floor, and
``roofline_share`` is its inverse. Cached data, convolutions by Winograd's algorithm, or a roofline that was measured on
a busy device can make a step faster than its floor; both metrics are then empty.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.matching import baseline
from highway_bench.measure.clock import ALL_CAPPED, ALL_DISTURBED, Budget, first_step
from highway_bench.measure.device import release
from highway_bench.measure.processes import keep_freed_memory
from highway_bench.measure.roofline import measure_roofline
from highway_bench.measure.statistics import Array, IntervalEstimate, ratio_over_processes
from highway_bench.measure.torch_internals import CLEAR_CACHES, COUNTERS, SLEEP
from highway_bench.tasks._step import StackStep
from highway_bench.tasks._timing import CellTimes, GroupTimes, time_group
from highway_bench.tasks.base import CellCost, Skip, StepTask, register_task, value_of
from highway_bench.tasks.from_cell import BUDGET_MISMATCH, TORCH_DTYPES, budget_mismatch, network_bytes
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.tasks.modes import CACHES, EXECUTION_MODES, compiler_caches
from highway_bench.words import NOT_NEGATIVE, POSITIVE, Word, whole

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder

SECONDS, ROUNDS, PROCESSES, PRECISION, LIMIT = 0.5, 20, 3, 0.03, 1.0  # defaults of recipe words
LARGEST_SHARE = 1.05  # of the roofline: noise of the roofline explains a share up to this
SPREAD = [10, 50, 90]  # percentiles: a value and its bounds are the second, the first and the third
RATES = ("matmul_rate", "conv_rate", "copy_rate")  # of the device, see Roofline


class NotCompiled(RuntimeError):
    """A compiled cell ran eagerly: its time would be mistaken for that of a compiled step."""


@register_task
class Throughput(StepTask):
    """Seconds of a step, forward, with backward, or with the update, and its share of the measured roofline."""

    name = "throughput"
    version = "4"  # 4: the optimiser of a training step is fused, as trainability's is
    metrics = (
        Metric("step_time", "s", "lower"),
        Metric("plain_ratio", "1", "lower", label="÷ plain's", hint="interval over processes"),
        Metric("yardstick_ratio", "1", "lower", label="÷ yard-stick's", hint="torch's own layers of like work"),
        Metric("step_time_p99", "s", "lower", label="p99"),
        Metric("waited", "1", "lower", label="wait for a core", hint="share of the wall time, left out", percent=True),
        Metric("disturbed", "1", "lower", label="rounds left out", hint="a thread waited for a core"),
        Metric("gpu_time", "s", "lower", label="GPU time", hint="between two events, without the launching of kernels"),
        Metric("gpu_ratio", "1", "lower", label="GPU time ÷ plain's", hint="interval over processes"),
        Metric("clock_rate", "Hz", label="GPU's clock", hint="by a probe in each round"),
        Metric("capped", "1", "lower", label="rounds with a capped clock", hint="by heat or power; left out"),
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
    with_baseline = True
    meter = True
    recipe_words: Mapping[str, Word] = {
        "seconds": NOT_NEGATIVE.meaning("Minimum time of the rounds per process, in seconds."),
        "samples": whole(1).meaning("Minimum number of rounds per process."),
        "processes": whole(1).meaning("Minimum number of processes."),
        "precision": POSITIVE.meaning("Relative half-width of a ratio's interval from which on no process is added."),
        "limit": NOT_NEGATIVE.meaning("Seconds per cell of a group after which no process is added."),
    }

    def group(self, cell: Cell) -> Hashable:
        return cell.but(block="", block_options={}, start=None, width=0, mode="eager").identity

    def timeout(self, cell: Cell) -> float:
        return 60.0 + (300.0 if EXECUTION_MODES[cell.mode].compiles else 0.0) + 10.0 * self.cost(cell).seconds

    def cost(self, cell: Cell) -> CellCost:
        processes = value_of(cell, "processes", PROCESSES)
        compiling = 2.0 * cell.depth if EXECUTION_MODES[cell.mode].compiles else 0.0
        return CellCost(processes * (0.1 + budget_of(cell).min_seconds) + compiling, network_bytes(cell))

    def prepare(self, cell: Cell) -> StackStep:
        return StackStep(cell)

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        """Time the group's cells in turn. A cell that cannot be prepared with the others is timed after them."""
        if not any(EXECUTION_MODES[cell.mode].compiles for cell in cells):
            yield from self._measure(cells, None)
            return
        with TemporaryDirectory(prefix="highway-bench-compiled-") as caches, compiler_caches(caches):
            yield from self._measure(cells, caches)

    def _measure(self, cells: Sequence[Cell], caches: str | None) -> Iterator[Outcome]:
        keep_freed_memory()
        measure_rooflines(cells)  # first, so that no cell's first step includes the process's lazy set-up
        works: dict[Cell, StackStep] = {}
        first: dict[Cell, tuple[float, int | None]] = {}
        dropped: list[Cell] = []
        for cell in cells:
            try:
                works[cell] = self.prepare(cell)
                first[cell] = measure_first_step(works[cell])
            except USER_ERRORS as error:  # the worker turns it into a status and a row
                works.pop(cell, None)
                if len(cells) == 1 or isinstance(error, Skip | BadInput):
                    yield Outcome(cell, error=error)
                else:
                    dropped.append(cell)  # it may have lacked the memory of the others
        if works:
            times = timed(works, caches)
            for cell, work in works.items():
                measurements = step_measurements(work, cell, times, *first[cell])
                yield Outcome(cell, measurements, work.params, work.flops_per_item)
            works.clear()
            del work
            release(cells[0].device)
        for cell in dropped:
            yield from self.measure([cell])


def timed(works: Mapping[Cell, StackStep], caches: str | None) -> GroupTimes:
    """The samples of a group, as its cells' recipe says. Compiled steps are in the folder ``caches``."""
    one = next(iter(works))
    return time_group(
        works,
        budget_of(one),
        processes=value_of(one, "processes", PROCESSES),
        precision=value_of(one, "precision", PRECISION),
        most_seconds=value_of(one, "limit", LIMIT) * len(works),
        caches=caches,
    )


def budget_of(cell: Cell) -> Budget:
    """How long to sample in a process, from the cell's recipe."""
    seconds = float(value_of(cell, "seconds", SECONDS))
    return Budget(
        min_samples=value_of(cell, "samples", ROUNDS),
        min_seconds=seconds,
        warmup_samples=2,
        warmup_seconds=min(0.1, seconds / 5),
        max_seconds=60.0 + 5.0 * seconds,
    )


def measure_rooflines(cells: Sequence[Cell]) -> None:
    """Measure the rooflines of the cells' devices and dtypes, once a process."""
    for device, dtype in {(cell.device, cell.dtype): cell for cell in cells}:
        if device in ("cpu", "cuda") and dtype in TORCH_DTYPES and (device == "cpu" or torch.cuda.is_available()):
            measure_roofline(device, dtype, torch.get_num_threads())


def measure_first_step(work: StackStep) -> tuple[float, int | None]:
    """Seconds of the first step, and a compiled one's graph breaks, where torch counts them.

    Raises ``NotCompiled`` where a compiled cell ran eagerly.

    Compilers' caches on disk are new for each group, so the time is that of a fresh machine. Of cells with equal graphs
    in a group, such as two gate biases, only the first one compiles. A throw-away network runs first, so the time does
    not include what a process, or such a cache, sets up once (compilers, kernels, allocators).
    """
    cell = work.cell
    other, compiles = throw_away_cell(cell), EXECUTION_MODES[cell.mode].compiles
    set_up = other.identity, os.environ.get(next(iter(CACHES))) if compiles else None
    if set_up not in _set_up:
        one = StackStep(other)
        first_step(one.step, restore=one.restore)
        _set_up.add(set_up)
    counters = COUNTERS.found if compiles else None
    if counters is not None:
        counters.clear()
    seconds = first_step(work.step, restore=work.restore)
    if counters is None:
        return seconds, None
    if not counters["stats"]["unique_graphs"]:
        raise NotCompiled("torch.compile made no graph; the step ran eagerly")
    return seconds, sum(counters["graph_break"].values())


def throw_away_cell(cell: Cell) -> Cell:
    """The cell of one layer whose first step sets up a process for the first step of ``cell``.

    It has the same block, because a block's own kernels are loaded at its first step. In a mode that compiles it has
    the baseline's block, so there is one a family: it sets up the compilers, and one for each block would take
    seconds and change little. It has one item more, so that no kernel of it is one of ``cell``.
    """
    one = cell.but(depth=1, seed=0, recipe={})
    if not EXECUTION_MODES[cell.mode].compiles:
        return one
    return one.but(block=baseline().name, block_options={}, width=cell.nominal_width, batch_size=cell.batch_size + 1)


_set_up: set[tuple[str, str | None]] = set()  # throw-away cells that this process has run, with the compilers' cache


def step_measurements(
    work: StackStep, cell: Cell, group: GroupTimes, first: float, breaks: int | None
) -> list[Measurement]:
    """A cell's measurements from the samples of its group."""
    flops = work.flops_per_item * work.items
    roofline = measure_roofline(cell.device, cell.dtype, torch.get_num_threads())
    floor = roofline.floor(flops, work.least_bytes())
    samples = group.cells[cell]
    times = np.asarray(samples.seconds)
    percentiles = np.percentile(times, SPREAD)
    measured = [
        spread("step_time", percentiles, samples=samples.seconds, paired=samples.paired, message=remark(group)),
        ratio("plain_ratio", samples.ratio(samples.plain), group),
        ratio("yardstick_ratio", samples.ratio(samples.yardstick), group),
        Measurement(metric="step_time_p99", value=float(np.percentile(times, 99))),
        Measurement(metric="waited", value=1 - math.fsum(samples.seconds) / math.fsum(samples.wall)),
        Measurement(metric="disturbed", value=float(group.disturbed)),
        rate("throughput", work.items, times),
        rate("flop_rate", flops, times),
        *against_floor(floor, times),
        *on_gpu(samples, group),
        Measurement(metric="first_step", value=first),
        *(Measurement(metric=name, value=getattr(roofline, name)) for name in RATES),
        budget_mismatch(cell),
    ]
    if cell.device == "cuda" and (reason := SLEEP.lack):
        measured += [Measurement(metric=name, value=None, message=reason) for name in ("gpu_time", "clock_rate")]
    if EXECUTION_MODES[cell.mode].compiles:
        stale, compiling = CLEAR_CACHES.lack, max(0.0, first - float(percentiles[1]))
        measured += [
            Measurement(metric="compile_time", value=None if stale else compiling, message=stale),
            Measurement(metric="graph_breaks", value=breaks, message=COUNTERS.lack),
        ]
    return measured


def remark(group: GroupTimes) -> str | None:
    """What a reader must know of a group's samples; ``None`` for nothing."""
    remarks = [f"a process gave no samples: {reason}" for reason in group.failures]
    if group.cut_short:
        remarks.append(
            f"cut short in {group.cut_short} of {group.processes} processes: out of time, or disturbed too often"
        )
    return "; ".join(remarks) or None


def on_gpu(samples: CellTimes, group: GroupTimes) -> Iterator[Measurement]:
    """The metrics that only a GPU has: GPU time, its ratio to plain's, the clock rate and the rounds that capped it."""
    if samples.gpu:
        paired = {"process": samples.process, "plain": samples.plain_gpu}
        yield spread("gpu_time", np.percentile(samples.gpu, SPREAD), samples=samples.gpu, paired=paired)
        yield ratio("gpu_ratio", ratio_over_processes(samples.gpu, samples.plain_gpu, samples.process), group)
    if samples.clock_rate:
        rates = np.percentile(samples.clock_rate, SPREAD)
        yield spread("clock_rate", rates, count=len(samples.clock_rate))
        capped = None if group.unread else float(group.capped)
        message = f"not read: {group.unread}" if group.unread else ", ".join(sorted(group.caps)) or None
        yield Measurement(metric="capped", value=capped, message=message)


def ratio(metric: str, estimate: IntervalEstimate, group: GroupTimes) -> Measurement:
    """A ratio of step times, one sample per process.

    It has no interval from a single process, nor where every round of a process was disturbed, by the other work on the
    machine or by a capped clock: such rounds tell about the machine too."""
    decides = not group.all_disturbed and not math.isnan(estimate.low)
    low, high = (estimate.low, estimate.high) if decides else (None, None)
    message = None
    if group.all_disturbed:
        message = f"{ALL_CAPPED} ({', '.join(sorted(group.caps))})" if group.capped else ALL_DISTURBED
    return Measurement(metric=metric, value=estimate.value, low=low, high=high, count=estimate.n, message=message)


def spread(metric: str, percentiles: Array, **fields: Any) -> Measurement:
    """The measurement of values with these ``percentiles``, which are those of ``SPREAD``."""
    low, middle, high = map(float, percentiles)
    return Measurement(metric=metric, value=middle, low=low, high=high, **fields)


def rate(metric: str, amount: float, times: Array) -> Measurement:
    """``amount`` a second: median, p10 and p90 over steps that took ``times`` seconds."""
    return spread(metric, amount / np.percentile(times, SPREAD[::-1]))


def against_floor(floor: float, times: Array) -> list[Measurement]:
    """``roofline_share`` and ``slowdown`` of steps that took ``times`` seconds.

    Both are empty, with the reason, where a tenth of the steps were faster than the floor. Other work on the machine
    can only make a step slower, so the floor is then wrong for all steps.
    """
    share = rate("roofline_share", floor, times)
    multiples = np.percentile(times, SPREAD) / floor
    slowdown, low = spread("slowdown", multiples), float(multiples[0])
    if 1 / low <= LARGEST_SHARE:
        return [share, slowdown]
    reason = (
        f"a tenth of the steps took at most {low:.3g} of their floor: cached data, fewer FLOP than counted, or a "
        "roofline that was measured on a busy device"
    )
    return [Measurement(metric=one.metric, value=None, message=reason) for one in (share, slowdown)]

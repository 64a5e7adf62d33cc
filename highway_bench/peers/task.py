"""The task ``peers``: our step's time and saved bytes over those of a peer, on equal weights and inputs.

No profile has it: the module is loaded like a plug-in, by what compares peers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS
from highway_bench.families.parts import count_parameters
from highway_bench.measure.processes import keep_freed_memory
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.peers.base import peers
from highway_bench.peers.pair import PeerPair
from highway_bench.peers.timing import OURS, PeerTimes, time_in_turn
from highway_bench.tasks.base import CellCost, Task, tasks, value_of
from highway_bench.tasks.from_cell import network_bytes
from highway_bench.tasks.measurement import Measurement, Metric, Outcome
from highway_bench.tasks.modes import EXECUTION_MODES
from highway_bench.tasks.throughput import LIMIT, PRECISION, PROCESSES, budget_of
from highway_bench.words import Word, one_of

if TYPE_CHECKING:
    from highway_bench.training.checkpoint import CheckpointFolder


class Peers(Task):
    """A step's time, and the bytes it saves for the backward pass, next to those of another implementation."""

    name = "peers"
    version = "1"
    metrics = (
        Metric("peer_ratio", "1", "lower", label="ours ÷ theirs", hint="interval over processes"),
        Metric("step_time", "s", "lower", label="ours"),
        Metric("peer_time", "s", "lower", label="theirs"),
        Metric("gpu_ratio", "1", "lower", label="GPU time, ours ÷ theirs", hint="interval over processes"),
        Metric("saved_activations", "B", "lower", label="saved"),
        Metric("peer_saved", "B", "lower", label="saved by theirs"),
        Metric("difference", "1", label="largest difference", hint="of outputs and gradients, relative"),
    )
    alone = True
    meter = True
    recipe_words: Mapping[str, Word] = {
        **tasks.get("throughput").recipe_words,
        "peer": one_of(*peers).meaning("The other implementation."),
        "version": Word("a version", lambda value: value is None or isinstance(value, str), type="name").meaning(
            "The version of the package that computes it."
        ),
    }

    def group(self, cell: Cell) -> Hashable:
        return cell.but(recipe={name: value for name, value in cell.recipe.items() if name not in ("peer", "version")})

    def timeout(self, cell: Cell) -> float:
        return 120.0 + 10.0 * self.cost(cell).seconds

    def cost(self, cell: Cell) -> CellCost:
        compiling = 3.0 * cell.depth if EXECUTION_MODES[cell.mode].compiles else 0.0
        processes = value_of(cell, "processes", PROCESSES)
        return CellCost(processes * (1.0 + 2 * budget_of(cell).min_seconds + compiling), 2 * network_bytes(cell))

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        """Time the peers of a group in turn with our network. A peer that cannot be built, or differs, is not timed."""
        keep_freed_memory()
        pairs: dict[Cell, PeerPair] = {}
        for cell in cells:
            try:
                pairs[cell] = PeerPair.of(cell)
            except USER_ERRORS as error:  # the worker turns it into a status and a row
                yield Outcome(cell, error=error)
        if not pairs:
            return
        one = next(iter(pairs))
        times = time_in_turn(
            pairs,
            budget_of(one),
            processes=value_of(one, "processes", PROCESSES),
            precision=value_of(one, "precision", PRECISION),
            most_seconds=value_of(one, "limit", LIMIT) * len(pairs),
        )
        for cell, pair in pairs.items():
            yield Outcome(cell, tuple(measurements(cell, pair, times)), count_parameters(pair.network))


def measurements(cell: Cell, pair: PeerPair, times: PeerTimes) -> Iterator[Measurement]:
    """The metrics of one peer. Ours were sampled in the same rounds as every peer's of the group."""
    yield ratio("peer_ratio", times.ratio(cell), times)
    ours, theirs, process = times.seconds(OURS), times.seconds(cell), times.process
    yield sampled("step_time", ours, {"process": process, "peer": theirs}, "; ".join(times.failures))
    yield sampled("peer_time", theirs, {"process": process})
    gpu = times.gpu_ratio(cell)
    if gpu is not None:
        yield ratio("gpu_ratio", gpu, times)
    if cell.phase != "forward":
        yield Measurement(metric="saved_activations", value=float(pair.our_step.saved))
        yield Measurement(metric="peer_saved", value=float(pair.peer_step.saved))
    yield Measurement(metric="difference", value=pair.difference)


def ratio(metric: str, estimate: IntervalEstimate, times: PeerTimes) -> Measurement:
    """A ratio of times, one sample a process; without an interval where it has none, or does not decide."""
    decides = times.undecided is None and not math.isnan(estimate.low)
    low, high = (estimate.low, estimate.high) if decides else (None, None)
    return Measurement(
        metric=metric, value=estimate.value, low=low, high=high, count=estimate.n, message=times.undecided
    )


def sampled(
    metric: str, seconds: Sequence[float], paired: Mapping[str, Sequence[float]], message: str = ""
) -> Measurement:
    """The median of the samples, p10 and p90, with all of them."""
    low, middle, high = (float(value) for value in np.percentile(seconds, [10, 50, 90]))
    return Measurement(
        metric=metric, value=middle, low=low, high=high, samples=seconds, paired=paired, message=message or None
    )


def register() -> None:
    """Register the task, unless it is registered."""
    if Peers.name not in tasks:
        tasks.register(Peers.name, Peers(), module=__name__)


register()

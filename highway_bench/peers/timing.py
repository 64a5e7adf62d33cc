"""Timing of our network and its peers in turn, in several processes (see ``measure.clock``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from highway_bench.cell import Cell
from highway_bench.measure.clock import ALL_CAPPED, ALL_DISTURBED, Budget, Turns, take_turns
from highway_bench.measure.device import cache_eviction, freed
from highway_bench.measure.gpu_watch import stopwatch_of
from highway_bench.measure.precision import use_precision
from highway_bench.measure.processes import call_in, keep_freed_memory, pinned, sample_processes
from highway_bench.measure.statistics import IntervalEstimate, ratio_over_processes
from highway_bench.peers.pair import NetworkStep, PeerPair

OURS = "ours"

PeerArm = Cell | str
"""What is timed in a round: the peer of a cell, or ``OURS``."""


@dataclass
class PeerTimes:
    """The rounds of our network and of the cells' peers, one ``Turns`` a process.

    ``failures`` are the reasons of processes that gave none.
    """

    cells: tuple[Cell, ...]
    turns: list[Turns[PeerArm]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def seconds(self, arm: PeerArm) -> list[float]:
        """The samples of all processes."""
        return [seconds for one in self.turns for seconds in one.seconds[arm]]

    @property
    def process(self) -> list[int]:
        """The process of each sample."""
        return [number for number, one in enumerate(self.turns) for _ in one.seconds[OURS]]

    def ratio(self, cell: Cell) -> IntervalEstimate:
        """Our time over that of the cell's peer, with its interval over processes and other programs."""
        wall = [seconds for one in self.turns for seconds in one.wall[OURS]]
        return ratio_over_processes(self.seconds(OURS), self.seconds(cell), self.process, wall=wall)

    def gpu_ratio(self, cell: Cell) -> IntervalEstimate | None:
        """The ratio of GPU times; ``None`` on a CPU."""
        ours, theirs = ([one for turns in self.turns for one in turns.on_gpu.get(arm, [])] for arm in (OURS, cell))
        return ratio_over_processes(ours, theirs, self.process) if ours else None

    @property
    def undecided(self) -> str | None:
        """Why no ratio is decided, where a process had no undisturbed round."""
        disturbed = [one for one in self.turns if one.all_disturbed]
        return (ALL_CAPPED if any(one.capped for one in disturbed) else ALL_DISTURBED) if disturbed else None

    def is_precise(self, precision: float) -> bool:
        """Whether every ratio is known to ± ``precision`` but for what more samples cannot show."""
        ratios = [ratio_over_processes(self.seconds(OURS), self.seconds(cell), self.process) for cell in self.cells]
        return all(ratio.high / ratio.value - 1 <= precision for ratio in ratios)


def time_in_turn(
    pairs: Mapping[Cell, PeerPair], budget: Budget, *, processes: int, precision: float, most_seconds: float
) -> PeerTimes:
    """Time the networks of ``pairs``, which differ only in the peer, here and in other processes."""
    cells = tuple(pairs)
    times = PeerTimes(cells)

    def sample(number: int) -> None:
        taken = call_in(number, turns_of, cells, budget, number) if number else one_process(pairs, budget, 0)
        times.turns.append(taken)

    times.failures = sample_processes(
        sample, lambda: times.is_precise(precision), least=processes, most_seconds=most_seconds
    )
    return times


def turns_of(cells: Sequence[Cell], budget: Budget, number: int) -> Turns[PeerArm]:
    """The rounds of the cells in this process, the one of this ``number``."""
    torch.set_num_threads(cells[0].threads)
    use_precision(cells[0].dtype)
    keep_freed_memory()
    with freed(cells[0].device):
        return one_process({cell: PeerPair.of(cell) for cell in cells}, budget, number)


def one_process(pairs: Mapping[Cell, PeerPair], budget: Budget, number: int) -> Turns[PeerArm]:
    """Our network and the peers in turn, on one core where they run in one thread of the CPU.

    Where its weights lie moves a narrow network's time by a few percent, as long as the process lasts. So our weights
    come before the peers' in one process, and after them in the next.
    """
    one, pair = next(iter(pairs.items()))
    steps: dict[PeerArm, NetworkStep] = {OURS: pair.our_step.of_copy() if number % 2 else pair.our_step}
    steps |= {cell: pair.peer_step for cell, pair in pairs.items()}
    evict = cache_eviction(one.device)
    with pinned(number if one.device == "cpu" and one.threads == 1 else None):
        for step in steps.values():
            step()  # compiles, and pays for lazy set-up
        return take_turns(
            steps,
            budget,
            restore=dict.fromkeys(steps, evict),
            launch={arm: step.launch for arm, step in steps.items()} if one.device == "cuda" else None,
            watch=stopwatch_of(one.device, one.threads),
            seed=number,
        )

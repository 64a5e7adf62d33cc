"""Clock: times several steps in turn, and knows when the machine disturbed them.

A step is a callable that does one unit of work and synchronises its device before it returns (see ``device``), so that
a clock around the call measures it all. ``restore`` undoes a step; it runs between samples and is never timed. All
samples are returned, in order, in seconds.

Other processes disturb a time in two ways. A thread waits for a core: the thread's own clock leaves this out
(``run_delay.ThreadClock``), which suffices for a step in one thread on a CPU. With several threads, or on a GPU, the
wait of one thread is hidden in another's, so a round with such a wait is left out and counted. Memory and caches are
shared: no clock shows it, but all steps of a round share it, so their ratios hardly change.

On a GPU, a round in which heat or power capped the device's clock is left out and counted too.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ..errors import BadInput
from .processes import ThreadClock, process_delay

DISTURBED = 0.01  # of a round's wall time: run delay of all threads from which on the round is left out
ALL_DISTURBED = "undecided: every round was disturbed"
ALL_CAPPED = "undecided: the GPU's clock was capped"
MOST_COOLING = 5.0  # seconds before the first round in which a capped clock may recover
MOST_TRIED = 3  # times the least rounds and seconds: a busy machine may disturb every round

Step = Callable[[], object]
Clock = Callable[[], float]
Key = TypeVar("Key")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long to warm up and to sample.

    Sampling continues until there are ``min_samples`` rounds (one call of every step) *and* their times add up to
    ``min_seconds``; warm-up likewise. ``max_seconds`` bounds the whole call, including warm-up and ``restore``: no
    round starts after it. One round is always timed, and a round is never interrupted.
    """

    min_samples: int = 20
    min_seconds: float = 0.5
    warmup_samples: int = 3
    warmup_seconds: float = 0.1
    max_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.min_samples < 1 or self.warmup_samples < 0:
            raise BadInput(
                f"a budget needs min_samples ≥ 1 and warmup_samples ≥ 0, "
                f"not {self.min_samples} and {self.warmup_samples}"
            )
        seconds = (self.min_seconds, self.warmup_seconds, self.max_seconds)
        if not all(math.isfinite(value) and value >= 0 for value in seconds):
            raise BadInput(f"a budget's seconds must be finite and not negative, not {seconds}")


class GpuMeter(Protocol):
    """What is read of a GPU between calls of steps (see ``gpu_watch``, which imports torch)."""

    unread: str | None  # why the causes of a capped clock cannot be read

    def seconds(self, launch: Step, wall: float) -> float | None:
        """GPU time of a step that takes the seconds ``wall``; ``None`` where none can be read."""

    def clock_rate(self) -> float:
        """The clock rate in Hz."""

    def caps(self) -> frozenset[str]:
        """Why the clock is capped at this moment."""


@dataclass(frozen=True)
class Stopwatch:
    """How a step's time is read, and which rounds are left out.

    ``clock`` gives the seconds of the statistic. ``delay``, if given, gives the run delay so far of all threads that
    work on a step: rounds in which it grew by more than ``DISTURBED`` of their wall time are left out. ``gpu``, if
    given, reads the GPU that computes: rounds after which its clock is capped are left out.
    """

    clock: Clock
    delay: Clock | None = None
    wall: Clock = time.perf_counter
    gpu: GpuMeter | None = None

    @classmethod
    def of(cls, device: str, threads: int) -> Stopwatch:
        """For steps on ``device`` ("cpu" or "cuda") with this number of threads, called from this thread.

        It has no ``gpu``; ``gpu_watch.stopwatch_of`` has one."""
        if device == "cpu" and threads == 1:
            return cls(ThreadClock())
        return cls(time.perf_counter, process_delay)


@dataclass(frozen=True)
class Turns(Generic[Key]):
    """Rounds of several steps, taken in turn. Sample i of every step belongs to round i: the samples are paired.

    ``seconds`` is what the statistic uses, ``wall`` the wall time of the same calls. ``disturbed`` counts the rounds
    that were left out, ``warmups`` those before the first. ``cut_short``: the time was up before there were enough.
    ``all_disturbed``: every round was disturbed, so none was left out.

    On a GPU, ``on_gpu`` has the GPU times of another call of the same rounds, of the steps whose launch was given, and
    ``clock_rate`` the clock rate in Hz after each round. ``capped`` counts the rounds with a capped clock, which
    ``disturbed`` includes, and ``caps`` has the causes. ``unread`` is the reason why no cause could be read.
    """

    seconds: dict[Key, list[float]]
    wall: dict[Key, list[float]]
    warmups: int
    disturbed: int
    cut_short: bool
    all_disturbed: bool
    on_gpu: dict[Key, list[float]] = field(default_factory=dict)
    clock_rate: list[float] = field(default_factory=list)
    capped: int = 0
    caps: frozenset[str] = frozenset()
    unread: str | None = None


def first_step(step: Step, *, restore: Step | None = None, clock: Clock = time.perf_counter) -> float:
    """Seconds of one call without warm-up. For the first call, this includes compilation and lazy set-up."""
    begin = clock()
    step()
    seconds = clock() - begin
    if restore is not None:
        restore()
    return seconds


def take_turns(
    steps: Mapping[Key, Step],
    budget: Budget,
    *,
    restore: Mapping[Key, Step] | None = None,
    launch: Mapping[Key, Step] | None = None,
    watch: Stopwatch | None = None,
    seed: int = 0,
) -> Turns[Key]:
    """Time several steps in turn, so that drift and disturbances affect all of them alike.

    Each round calls every step once, in an order drawn from ``seed``: a fixed rotation could lock onto the period of a
    scheduler. The budget counts rounds: ``min_samples`` of them, and ``min_seconds`` of their times summed over all
    steps; disturbed rounds do not count, but after ``MOST_TRIED`` times the budget it is cut short. ``restore`` maps a
    key to what undoes its step. It runs after each call of the step and is not timed. If every round was disturbed,
    none is left out, and ``disturbed`` counts them all. ``watch`` is by default that of one thread on a CPU.

    With a watch of a GPU, ``launch`` maps a key to its step without the synchronisation. It is called once more in each
    round, for the GPU time. Work before this call may have heated the GPU, so the first round waits until its clock is
    not capped, at most ``MOST_COOLING`` seconds.
    """
    if not steps:
        raise BadInput("there is no step to time")
    undo = restore or {}
    if unknown := [key for key in undo if key not in steps]:
        raise BadInput(f"restore names steps that are not timed: {unknown}")
    rounds = _Rounds(steps, undo, launch or {}, watch or Stopwatch.of("cpu", 1), random.Random(seed))
    if rounds.watch.gpu is not None:
        _cool(rounds.watch.gpu)
    begin = rounds.watch.wall()

    def out_of_time() -> bool:
        return rounds.watch.wall() - begin >= budget.max_seconds

    warmups, spent = 0, 0.0
    while (warmups < budget.warmup_samples or spent < budget.warmup_seconds) and not out_of_time():
        spent += sum(rounds.one().wall.values())
        warmups += 1

    taken: list[_Round[Key]] = []
    left_out: list[_Round[Key]] = []
    spent, tried, cut_short = 0.0, 0.0, False
    while len(taken) < budget.min_samples or spent < budget.min_seconds:
        enough = len(taken) + len(left_out) >= MOST_TRIED * budget.min_samples
        if (taken or left_out) and (out_of_time() or (enough and tried >= MOST_TRIED * budget.min_seconds)):
            cut_short = True
            break
        one = rounds.one()
        seconds = sum(one.wall.values())
        (left_out if one.disturbed else taken).append(one)
        tried += seconds
        spent += 0.0 if one.disturbed else seconds
    used = taken or left_out
    return Turns(
        {key: [one.seconds[key] for one in used] for key in steps},
        {key: [one.wall[key] for one in used] for key in steps},
        warmups,
        len(left_out),
        cut_short,
        not taken,
        {key: [one.on_gpu[key] for one in used] for key in used[0].on_gpu},
        [one.clock_rate for one in used if one.clock_rate],
        sum(bool(one.caps) for one in left_out),
        frozenset().union(*(one.caps for one in left_out)),
        rounds.watch.gpu.unread if rounds.watch.gpu else None,
    )


def _cool(gpu: GpuMeter) -> None:
    """Wait until the clock is not capped, or the time for that is up."""
    deadline = time.monotonic() + MOST_COOLING
    while gpu.caps() and time.monotonic() < deadline:
        time.sleep(0.1)


@dataclass(frozen=True)
class _Round(Generic[Key]):
    """The times of one round's calls, and whether the machine disturbed them."""

    seconds: dict[Key, float]
    wall: dict[Key, float]
    disturbed: bool
    on_gpu: dict[Key, float]
    clock_rate: float  # 0 on a CPU
    caps: frozenset[str]


class _Rounds(Generic[Key]):
    """Runs rounds."""

    def __init__(
        self,
        steps: Mapping[Key, Step],
        restore: Mapping[Key, Step],
        launch: Mapping[Key, Step],
        watch: Stopwatch,
        order: random.Random,
    ) -> None:
        self.steps, self.restore, self.launch, self.watch, self._order = steps, restore, launch, watch, order

    def one(self) -> _Round[Key]:
        watch, keys = self.watch, list(self.steps)
        self._order.shuffle(keys)
        seconds: dict[Key, float] = {}
        walls: dict[Key, float] = {}
        delay = 0.0
        for key in keys:
            before = watch.delay() if watch.delay else 0.0
            wall, start = watch.wall(), watch.clock()
            self.steps[key]()
            seconds[key] = watch.clock() - start
            walls[key] = watch.wall() - wall
            delay += watch.delay() - before if watch.delay else 0.0
            if key in self.restore:
                self.restore[key]()
        caps: frozenset[str] = frozenset()
        on_gpu: dict[Key, float] = {}
        if watch.gpu is not None:
            caps = watch.gpu.caps()  # at once, while the device is as warm as the steps made it
            on_gpu = self._gpu_times(watch.gpu, walls)
            caps |= watch.gpu.caps()
        rate = watch.gpu.clock_rate() if watch.gpu is not None else 0.0
        return _Round(seconds, walls, delay > DISTURBED * sum(walls.values()) or bool(caps), on_gpu, rate, caps)

    def _gpu_times(self, gpu: GpuMeter, walls: Mapping[Key, float]) -> dict[Key, float]:
        """GPU times of another call of each step that can be launched, in the round's order."""
        times: dict[Key, float] = {}
        for key in (key for key in walls if key in self.launch):
            if (seconds := gpu.seconds(self.launch[key], walls[key])) is not None:
                times[key] = seconds
            if key in self.restore:
                self.restore[key]()
        return times

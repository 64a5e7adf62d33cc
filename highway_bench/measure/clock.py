"""Clock: times a step repeatedly, or several steps in turn.

A step is a callable that does one unit of work and synchronises its device before it returns (see ``synchronise``), so
that a clock around the call measures it all. ``restore`` undoes a step; it runs between samples and is never timed. All
samples are returned, in order, in seconds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from highway_bench.errors import BadInput

if TYPE_CHECKING:
    import torch

Step = Callable[[], object]
Clock = Callable[[], float]
Key = TypeVar("Key")


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long to warm up and to sample.

    Sampling continues until there are ``min_samples`` samples *and* their times add up to ``min_seconds``; warm-up
    likewise. ``max_seconds`` bounds the whole call, including warm-up and ``restore``: no round (one call of every
    step) starts after it. One round is always timed, and a round is never interrupted.
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


@dataclass(frozen=True)
class Samples:
    """The result of sampling: ``seconds`` of every sample in order, the number of warm-up steps before, and whether
    ``max_seconds`` stopped it before its least count or time."""

    seconds: list[float]
    warmups: int
    cut_short: bool

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def p10(self) -> float:
        return float(np.percentile(self.seconds, 10))

    @property
    def p90(self) -> float:
        return float(np.percentile(self.seconds, 90))

    def __str__(self) -> str:
        return f"{self.median:.3g} s (p10 {self.p10:.3g}, p90 {self.p90:.3g}, n = {len(self)})"


def synchronise(device: str | torch.device) -> None:
    """Wait until ``device`` has finished all its work; on a CPU there is nothing to wait for."""
    import torch  # here: modules that must not import torch import ``Budget``

    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def first_step(step: Step, *, restore: Step | None = None, clock: Clock = time.perf_counter) -> float:
    """Seconds of one call without warm-up. For the first call, this includes compilation and lazy set-up."""
    begin = clock()
    step()
    seconds = clock() - begin
    if restore is not None:
        restore()
    return seconds


def sample(step: Step, budget: Budget, *, restore: Step | None = None, clock: Clock = time.perf_counter) -> Samples:
    """Warm ``step`` up, then time it call by call within ``budget``; ``restore`` follows every call and is not
    timed."""
    seconds, warmups, cut_short = _rounds({None: step}, budget, {} if restore is None else {None: restore}, clock)
    return Samples(seconds[None], warmups, cut_short)


def sample_interleaved(
    steps: Mapping[Key, Step],
    budget: Budget,
    *,
    restore: Mapping[Key, Step] | None = None,
    clock: Clock = time.perf_counter,
) -> dict[Key, list[float]]:
    """Time several steps in turn, so that drift and disturbances affect all of them alike.

    Each round calls every step once. From round to round the order is rotated by one; once every step has been first,
    the direction is reversed (A B C, B C A, C A B, A C B, …). So each step has each position equally often, and no step
    follows itself, with warm caches, more often than the others. Sample i of every key belongs to round i: the samples
    are paired. The budget counts rounds: ``min_samples`` rounds, and ``min_seconds`` of their times summed over all
    steps. ``restore`` maps a key to what undoes its step. It runs after each call of the step and is not timed.
    """
    if not steps:
        raise BadInput("there is no step to time")
    unknown = [key for key in restore or {} if key not in steps]
    if unknown:
        raise BadInput(f"restore names steps that are not timed: {unknown}")
    return _rounds(steps, budget, restore or {}, clock)[0]


def cache_eviction(device: str | torch.device) -> Step:
    """A callable that evicts a step's buffers from a GPU's L2 cache; call it within ``restore``.

    It overwrites a buffer of twice the cache's size. On a CPU it does nothing: a network that fits the cache is warm
    there in practice too.
    """
    import torch

    target = torch.device(device)
    if target.type != "cuda":
        return lambda: None
    buffer = torch.empty(2 * torch.cuda.get_device_properties(target).L2_cache_size, dtype=torch.uint8, device=target)

    def evict() -> None:
        buffer.zero_()
        synchronise(target)

    return evict


def _order(keys: list[Key], number: int) -> list[Key]:
    """The keys in the order of round ``number``."""
    turns, first = divmod(number, len(keys))
    direction = keys if turns % 2 == 0 else [keys[0], *reversed(keys[1:])]
    return direction[first:] + direction[:first]


def _rounds(
    steps: Mapping[Key, Step], budget: Budget, restore: Mapping[Key, Step], clock: Clock
) -> tuple[dict[Key, list[float]], int, bool]:
    """Warm-up rounds, then timed rounds: (seconds by key, warm-up rounds, whether max_seconds cut it short)."""
    keys = list(steps)
    begin = clock()

    def run_round(number: int) -> dict[Key, float]:
        times: dict[Key, float] = {}
        for key in _order(keys, number):
            start = clock()
            steps[key]()
            times[key] = clock() - start
            if key in restore:
                restore[key]()
        return times

    def out_of_time() -> bool:
        return clock() - begin >= budget.max_seconds

    warmups, spent = 0, 0.0
    while (warmups < budget.warmup_samples or spent < budget.warmup_seconds) and not out_of_time():
        spent += sum(run_round(warmups).values())
        warmups += 1

    rounds: list[dict[Key, float]] = []
    spent = 0.0
    cut_short = False
    while len(rounds) < budget.min_samples or spent < budget.min_seconds:
        if rounds and out_of_time():
            cut_short = True
            break
        rounds.append(run_round(len(rounds)))
        spent += sum(rounds[-1].values())
    return {key: [times[key] for times in rounds] for key in keys}, warmups, cut_short

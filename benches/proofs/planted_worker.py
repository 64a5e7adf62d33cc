"""A measuring process whose steps take 5 % longer, by work that no count shows; ``gate`` runs this file.

The environment variable ``PLANTED`` is ``compute`` (a product of small matrices) or ``memory`` (copies through a buffer
that no cache holds). How much of it makes the share is measured for each workload. Copies also evict the step's own
data, so that a smaller share of them makes about 5 %.
"""

from __future__ import annotations

import importlib
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

SHARES = {"compute": 0.05, "memory": 0.034}
CHUNK, CHUNKS = 2**13, 2**10  # doubles: 64 KiB each, 64 MiB in all
PACKAGE = Path(__file__).resolve().parents[2] / "highway_bench"


def compute() -> Callable[[], object]:
    """A unit of work that is bound by arithmetic."""
    a = np.random.default_rng(0).normal(size=(48, 48))
    return lambda: a @ a


def memory() -> Callable[[], object]:
    """A unit of work that is bound by memory's bandwidth."""
    source, target = np.ones((CHUNKS, CHUNK)), np.ones((CHUNKS, CHUNK))
    turn = iter(range(2**62))

    def copy() -> None:
        number = next(turn) % CHUNKS
        target[number] = source[number]

    return copy


class Slower:
    """A workload, and 5 % more work in each step."""

    def __init__(self, work: Any, clock: Callable[[], float], unit: Callable[[], object], share: float) -> None:
        self.work, self.unit, self.x = work, unit, work.x
        seconds = statistics.median(timed(clock, work.step) for _ in range(10))
        units = statistics.median(timed(clock, lambda: [unit() for _ in range(100)]) / 100 for _ in range(10))
        self.count = max(1, round(share * seconds / units))

    def step(self) -> None:
        self.work.step()
        for _ in range(self.count):
            self.unit()

    def restore(self) -> None:
        self.work.restore()


def timed(clock: Callable[[], float], function: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = clock()
    function()
    return clock() - start


def main() -> None:
    """Respond to requests, as the package's own worker does."""
    tree = sys.modules["current"] = ModuleType("current")
    tree.__path__ = [str(PACKAGE)]
    requests = importlib.import_module("current.history.suite.requests")
    kind = os.environ["PLANTED"]
    unit = {"compute": compute, "memory": memory}[kind]()

    class Planted(requests.Requests):  # type: ignore[misc, name-defined]
        def built(self, *cell: Any) -> Slower:
            return Slower(super().built(*cell), self.watch.clock, unit, SHARES[kind])

    requests.Requests = Planted
    requests.main()


if __name__ == "__main__":
    main()

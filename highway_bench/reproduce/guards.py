"""The guard of all comparisons: no verdict from a comparison with a net that has not trained.

A source's own criterion of failure decides where it has one; else a network is trained that has left chance behind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from highway_bench.data import make_dataset
from highway_bench.report.format import three
from highway_bench.reproduce.quantities import Region


class Trained(NamedTuple):
    """The criterion by which a network has learnt something: a run's ``metric`` lies in ``region``. ``otherwise`` says
    what a network is that does not meet it."""

    metric: str
    region: Region
    text: str
    otherwise: str = "is untrained"

    def by(self, run: Mapping[str, float]) -> bool:
        value = run.get(self.metric, math.nan)
        return self.region.has(value, value)


def left_chance(dataset: str) -> Trained:
    """The criterion of a loss below half of chance's on ``dataset``."""
    half = make_dataset(dataset).chance_loss / 2
    return Trained("final_loss", Region(most=half), f"a final loss below {three(half)} nat")


def untrained(name: str, runs: Sequence[Mapping[str, float]], trained: Trained) -> str:
    """The reason why nothing can be compared with ``name``: fewer than half of its runs, which are given by their
    metrics, are ``trained``. Empty if there is no such reason."""
    count = sum(map(trained.by, runs))
    if runs and 2 * count >= len(runs):
        return ""
    return f"{name} {trained.otherwise}: {trained.text} at {count} of {len(runs)} seeds"

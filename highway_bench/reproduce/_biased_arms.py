"""Networks by gate bias: which biases leave chance, and which no other beats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from highway_bench.report.format import listed, signed
from highway_bench.reproduce._paired import ArmRuns, diverged, loss_record, ratio
from highway_bench.reproduce.guards import left_chance
from highway_bench.success.ladder import TRAINABLE

ByBias = Mapping[float, ArmRuns]
ByDepth = Mapping[int, ByBias]  # by layers
BIASES = (0.0, -1.0, -2.0, -3.0, -4.0)
PAIRS = math.comb(len(BIASES), 2)  # of biases at one depth: the number of comparisons that Bonferroni corrects for
LEFT_CHANCE = left_chance("mnist-5k")


def leaving_chance(runs: ArmRuns) -> int:
    """The number of seeds at which a net has learnt something."""
    return sum(map(LEFT_CHANCE.by, runs.values()))


def is_mixed(runs: ArmRuns) -> bool:
    """Whether the net leaves chance at some seeds, but at fewer than 90 %. No net has the mean of such losses."""
    return 0 < leaving_chance(runs) < TRAINABLE * len(runs)


def record_of(runs: ArmRuns) -> dict[str, Any]:
    """The runs of a bias as a row of the table; the median loss, without an interval, where they are mixed."""
    record = loss_record(runs) | {"trained": leaving_chance(runs)}
    if not is_mixed(runs):
        return record
    median = float(np.median([run["final_loss"] for run in runs.values()]))
    return record | {"loss": median if math.isfinite(median) else math.nan, "low": math.nan, "high": math.nan}


def unbeaten(arms: ByBias, confidence: float) -> list[float]:
    """The biases that leave chance at 90 % of their seeds and diverge at none, and whose loss is not above that of any
    other of them."""
    trains = {
        bias: runs
        for bias, runs in arms.items()
        if runs and leaving_chance(runs) >= TRAINABLE * len(runs) and not diverged(runs)
    }
    return [
        bias
        for bias, runs in trains.items()
        if not any(ratio("", runs, other, confidence).low > 1 for other in trains.values())
    ]


def named(biases: Sequence[float]) -> str:
    """The biases in words."""
    return listed([signed(bias) for bias in biases]) if biases else "none"


def counts_of(arms: ByBias) -> str:
    """At how many seeds each bias leaves chance, in words."""
    return ", ".join(f"{leaving_chance(runs)} of {len(runs)} at {signed(bias)}" for bias, runs in arms.items())

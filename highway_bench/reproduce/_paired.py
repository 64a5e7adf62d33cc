"""Two arms on the same seeds: their runs, and the ratio of their losses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from highway_bench.cell import Cell
from highway_bench.frames.trainability import edge
from highway_bench.measure.statistics import log10_interval
from highway_bench.reproduce.quantities import Quantity, mean

ArmRuns = Mapping[int, Mapping[str, float]]  # seed → metrics of the run; without the runs that failed


def arm(values: Mapping[Cell, Mapping[str, float]], cells: Iterable[Cell]) -> ArmRuns:
    """The runs of ``cells`` by seed. A run that diverged has an infinite final loss."""
    ended = ((cell.seed, values[cell]) for cell in cells if "final_loss" in values[cell])
    return {
        seed: {**run, "final_loss": math.inf if math.isnan(run["final_loss"]) else run["final_loss"]}
        for seed, run in ended
    }


def diverged(runs: ArmRuns) -> int:
    """The number of runs that diverged."""
    return sum(math.isinf(run["final_loss"]) for run in runs.values())


def ratio(name: str, a: ArmRuns, b: ArmRuns, confidence: float) -> Quantity:
    """The final loss of ``a`` over that of ``b``, paired by seed, as a geometric mean with its t interval.

    Infinite if ``a`` diverged at every seed and ``b`` at none, 0 in the opposite case. NaN if only some runs diverged,
    since the others are no sample of the arm, and where a loss is 0."""
    gone_a, gone_b = diverged(a), diverged(b)
    if gone_a or gone_b:
        text = f"{name} (diverged at {gone_a} of {len(a)} seeds, the other at {gone_b} of {len(b)})"
        above, below = gone_a == len(a) and b and not gone_b, gone_b == len(b) and a and not gone_a
        return Quantity.exact(text, math.inf if above else 0.0 if below else math.nan, "×")
    pairs = [(a[seed]["final_loss"], b[seed]["final_loss"]) for seed in sorted(a.keys() & b.keys())]
    return mean(name, [own / other if other > 0 else math.nan for own, other in pairs], confidence, "×")


def loss_record(runs: ArmRuns) -> dict[str, Any]:
    """An arm as a row of a table.

    ``n`` runs, ``diverged`` of them; geometric mean ``loss`` of the others with its 95 % t interval ``low`` to
    ``high`` (NaN where a loss is 0); mean ``accuracy``; medians of ``rate``, ``params`` and ``step_seconds``. A missing
    number is NaN."""
    finite = [run["final_loss"] for run in runs.values() if math.isfinite(run["final_loss"])]
    loss = log10_interval(finite) if finite and min(finite) > 0 else None

    def average(name: str, function: Any) -> float:
        known = [run[name] for run in runs.values() if not math.isnan(run.get(name, math.nan))]
        return float(function(known)) if known else math.nan

    return {
        "n": len(runs),
        "diverged": diverged(runs),
        "loss": loss.value if loss else math.nan,
        "low": loss.low if loss else math.nan,
        "high": loss.high if loss else math.nan,
        "accuracy": average("test_accuracy", np.mean),
    } | {name: average(name, np.median) for name in ("rate", "params", "step_seconds")}


def with_edge(record: dict[str, Any], rates: Sequence[float]) -> dict[str, Any]:
    """``record``, whose ``rate`` was tuned over ``rates``, with the ``edge`` of these at which it lies."""
    return record | {"edge": edge(record["rate"], rates)}

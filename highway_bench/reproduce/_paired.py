"""Two arms run on the same seeds: what their losses' ratio allows to be said, by rules that stand before the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.measure.statistics import IntervalEstimate, log10_interval, t_interval
from highway_bench.report.format import between, times
from highway_bench.reproduce.base import Verdict
from highway_bench.results.schema import OUTCOMES

WHO = (
    "task",
    "block",
    "block_options",
    "family",
    "family_options",
    "width",
    "depth",
    "batch_size",
    "dataset",
    "recipe",
    "seed",
)
Arm = Mapping[int, float]  # seed → final loss, infinite where the run diverged; a run that failed is not there
Said = tuple[str, Verdict]


def measured(rows: pd.DataFrame, cells: Iterable[Cell]) -> dict[Cell, dict[str, float]]:
    """Every cell's scalar metrics in prepared ``rows``; none for a cell that has no result. A missing value is NaN.

    ``params``, the network's size, stands beside them where it is known."""
    found: dict[tuple[object, ...], dict[str, float]] = {}
    # A cell that failed has rows too, whose nulls must not pass for a loss that diverged
    frame = rows[(rows["axis"].fillna("") == "") & rows["trial"].isna() & rows["status"].isin(OUTCOMES)]
    for *who, params, metric, value in frame[[*WHO, "params", "metric", "value"]].itertuples(index=False, name=None):
        metrics = found.setdefault(tuple(who), {})
        metrics[metric] = value
        if not pd.isna(params):
            metrics["params"] = float(params)
    return {cell: found.get(tuple(cell.columns()[name] for name in WHO), {}) for cell in cells}


def arm(values: Mapping[Cell, Mapping[str, float]], cells: Iterable[Cell]) -> Arm:
    """The final losses of ``cells`` by seed."""
    ended = ((cell.seed, values[cell]["final_loss"]) for cell in cells if "final_loss" in values[cell])
    return {seed: math.inf if math.isnan(loss) else loss for seed, loss in ended}


def log_ratio(a: Arm, b: Arm, confidence: float) -> IntervalEstimate | None:
    """log₁₀ of how many times ``b``'s loss ``a``'s is, paired by seed, with a t interval; ``None`` without two pairs of
    finite losses."""
    pairs = [(a[seed], b[seed]) for seed in sorted(a.keys() & b.keys())]
    logs = [math.log10(one / other) for one, other in pairs if math.isfinite(one) and math.isfinite(other)]
    return t_interval(logs, confidence) if len(logs) > 1 else None


def loss_record(losses: Arm, values: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """An arm as a row of a table: ``n`` runs, ``diverged`` of them; geometric mean ``loss`` of the others with the ends
    ``low`` and ``high`` of its 95 % t interval; mean ``accuracy``; medians of ``rate``, ``params`` and
    ``step_seconds``. NaN where there is none. ``values`` are its cells' metrics."""
    finite = [loss for loss in losses.values() if math.isfinite(loss)]
    loss = log10_interval(finite) if finite else None
    names = ("test_accuracy", "rate", "params", "step_seconds")
    known = {name: [found[name] for found in values if not math.isnan(found.get(name, math.nan))] for name in names}
    medians = {name: float(np.median(known[name])) if known[name] else math.nan for name in names[1:]}
    return {
        "n": len(losses),
        "diverged": len(losses) - len(finite),
        "loss": loss.value if loss else math.nan,
        "low": loss.low if loss else math.nan,
        "high": loss.high if loss else math.nan,
        "accuracy": float(np.mean(known["test_accuracy"])) if known["test_accuracy"] else math.nan,
    } | medians


def worse(a: Arm, b: Arm, confidence: float) -> Said:
    """Is ``a``'s loss higher than ``b``'s? Reproduced where the interval of their ratio lies above 1, or where ``a``
    diverged at every seed and ``b`` at none; contradicted where it lies below 1; otherwise this budget does not tell.
    """
    return _judged(a, b, confidence, at_most=None)


def level(a: Arm, b: Arm, confidence: float, *, factor: float) -> Said:
    """Is ``a``'s loss at most ``factor`` times ``b``'s? Reproduced where the interval of their ratio lies below
    ``factor``; contradicted where it lies above, or where ``a`` diverged at every seed and ``b`` at none; otherwise
    this budget does not tell."""
    return _judged(a, b, confidence, at_most=factor)


def _judged(a: Arm, b: Arm, confidence: float, *, at_most: float | None) -> Said:
    above, below = (
        (Verdict.REPRODUCED, Verdict.CONTRADICTED) if at_most is None else (Verdict.CONTRADICTED, Verdict.REPRODUCED)
    )
    lost_a, lost_b = (sum(map(math.isinf, losses.values())) for losses in (a, b))
    if lost_a or lost_b:
        told = f"diverged at {lost_a} of {len(a)} seeds, and at {lost_b} of {len(b)} of what it is compared with"
        return told, above if lost_a == len(a) and not lost_b and b else Verdict.NOT_TESTABLE
    ratio = log_ratio(a, b, confidence)
    if ratio is None:
        return "fewer than two pairs of runs", Verdict.NOT_TESTABLE
    edge = 0.0 if at_most is None else math.log10(at_most)
    told = f"loss {times(10**ratio.value)} {between(10**ratio.low, 10**ratio.high)} (n = {ratio.n})"
    return told, above if ratio.low > edge else below if ratio.high < edge else Verdict.NOT_TESTABLE

"""Comparison of two arms on the same seeds by the ratio of their losses, under rules that precede the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.measure.statistics import IntervalEstimate, log10_interval, t_interval
from highway_bench.report.format import between, times
from highway_bench.reproduce.base import Verdict, rows_by_key
from highway_bench.results.schema import OUTCOMES

Losses = Mapping[int, float]  # seed → final loss, infinite where the run diverged; without the runs that failed
Comparison = tuple[str, Verdict]  # what was measured, and the verdict


def measured(rows: pd.DataFrame, cells: Iterable[Cell]) -> dict[Cell, dict[str, float]]:
    """The scalar metrics of every cell in prepared ``rows``; empty for a cell without a result. A null is NaN.

    ``params``, the network's number of parameters, is among them where it is known."""
    # A cell that failed has rows too. Their nulls must not be taken for diverged losses
    frame = rows[(rows["axis"].fillna("") == "") & rows["status"].isin(OUTCOMES)]
    by_key = {key: _metrics(part) for key, part in rows_by_key(frame).items()}
    return {cell: by_key.get(cell.key, {}) for cell in cells}


def _metrics(rows: pd.DataFrame) -> dict[str, float]:
    metrics = dict(zip(rows["metric"], rows["value"], strict=True))
    known = rows["params"].dropna()
    return metrics | ({"params": float(known.iloc[-1])} if len(known) else {})


def arm(values: Mapping[Cell, Mapping[str, float]], cells: Iterable[Cell]) -> Losses:
    """The final losses of ``cells`` by seed."""
    ended = ((cell.seed, values[cell]["final_loss"]) for cell in cells if "final_loss" in values[cell])
    return {seed: math.inf if math.isnan(loss) else loss for seed, loss in ended}


def log_ratio(a: Losses, b: Losses, confidence: float) -> IntervalEstimate | None:
    """Mean log₁₀ of loss ``a`` / loss ``b``, paired by seed, with a t interval; ``None`` with fewer than two pairs of
    finite losses."""
    pairs = [(a[seed], b[seed]) for seed in sorted(a.keys() & b.keys())]
    logs = [math.log10(one / other) for one, other in pairs if math.isfinite(one) and math.isfinite(other)]
    return t_interval(logs, confidence) if len(logs) > 1 else None


def loss_record(losses: Losses, values: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """An arm as a row of a table, from its losses and the metrics (``values``) of its cells.

    ``n`` runs, ``diverged`` of them; geometric mean ``loss`` of the others with its 95 % t interval ``low`` to
    ``high``; mean ``accuracy``; medians of ``rate``, ``params`` and ``step_seconds``. A missing number is NaN."""
    finite = [loss for loss in losses.values() if math.isfinite(loss)]
    loss = log10_interval(finite) if finite else None
    names = ("test_accuracy", "rate", "params", "step_seconds")
    known = {name: [one[name] for one in values if not math.isnan(one.get(name, math.nan))] for name in names}
    medians = {name: float(np.median(known[name])) if known[name] else math.nan for name in names[1:]}
    return {
        "n": len(losses),
        "diverged": len(losses) - len(finite),
        "loss": loss.value if loss else math.nan,
        "low": loss.low if loss else math.nan,
        "high": loss.high if loss else math.nan,
        "accuracy": float(np.mean(known["test_accuracy"])) if known["test_accuracy"] else math.nan,
    } | medians


def worse(a: Losses, b: Losses, confidence: float) -> Comparison:
    """The verdict on the claim that ``a`` has a higher loss than ``b``.

    Reproduced if the interval of their ratio lies above 1, or if ``a`` diverged at every seed and ``b`` at none;
    contradicted if the interval lies below 1; not testable otherwise.
    """
    return _judge(a, b, confidence, at_most=None)


def level(a: Losses, b: Losses, confidence: float, *, factor: float) -> Comparison:
    """The verdict on the claim that the loss of ``a`` is at most ``factor`` times that of ``b``.

    Reproduced if the interval of their ratio lies below ``factor``; contradicted if it lies above, or if ``a`` diverged
    at every seed and ``b`` at none; not testable otherwise."""
    return _judge(a, b, confidence, at_most=factor)


def _judge(a: Losses, b: Losses, confidence: float, *, at_most: float | None) -> Comparison:
    above, below = (
        (Verdict.REPRODUCED, Verdict.CONTRADICTED) if at_most is None else (Verdict.CONTRADICTED, Verdict.REPRODUCED)
    )
    diverged_a, diverged_b = (sum(map(math.isinf, losses.values())) for losses in (a, b))
    if diverged_a or diverged_b:
        text = f"diverged at {diverged_a} of {len(a)} seeds, the reference at {diverged_b} of {len(b)}"
        return text, above if diverged_a == len(a) and not diverged_b and b else Verdict.NOT_TESTABLE
    ratio = log_ratio(a, b, confidence)
    if ratio is None:
        return "fewer than two pairs of runs", Verdict.NOT_TESTABLE
    bound = 0.0 if at_most is None else math.log10(at_most)
    text = f"loss {times(10**ratio.value)} {between(10**ratio.low, 10**ratio.high)} (n = {ratio.n})"
    return text, above if ratio.low > bound else below if ratio.high < bound else Verdict.NOT_TESTABLE

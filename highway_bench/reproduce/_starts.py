"""Networks at their start: sizes of signal and gradient across a stack, as quantities over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.measure.statistics import log10_interval
from highway_bench.report import columns as column
from highway_bench.reproduce.quantities import Quantity, mean

StartCase = tuple[str, str, Mapping[str, Any], float]
"""A name, a block, its family's options, and the factor of its initial weights."""

SIZES = {"signal": "activation_ratio", "gradient": "gradient_ratio"}
"""What crosses the stack: the signal from the first layer to the last, the gradient back."""

WIDTH, BATCH = 64, 64


def start_cell(case: StartCase, depth: int, seed: int, *, device: str, **fields: Any) -> Cell:
    """The measurement of ``case`` at its start. With ``recipe``, its network also trains for a few steps on data."""
    _, block, options, gain = case
    recipe = {"gain": gain, **fields.pop("recipe", {})}
    return Cell(
        task="propagation",
        block=block,
        family="dense",
        family_options=options,
        depth=depth,
        width=WIDTH,
        nominal_width=WIDTH,
        match="width",
        batch_size=BATCH,
        dtype="float64",
        device=device,
        seed=seed,
        recipe=recipe,
        **fields,
    )


def size(name: str, runs: Sequence[Mapping[str, float]], way: str, confidence: float) -> Quantity:
    """The geometric mean, with its interval, of the factor by which signal or gradient changes across the stack."""
    return mean(name, [run[SIZES[way]] for run in runs if SIZES[way] in run], confidence, "×")


def still_text(runs: Sequence[Mapping[str, float]]) -> str:
    """The range of layers that stands still in all runs: "layers 1 to 46"; empty if there is none."""
    first, last = ([run.get(name, math.nan) for run in runs] for name in ("still_first", "still_last"))
    if not runs or any(map(math.isnan, [*first, *last])):
        return ""
    return f"layers {max(first):.0f} to {min(last):.0f}" if max(first) <= min(last) else ""


def starts_table(name: str, title: str, rows: Sequence[tuple[str, int, Sequence[Mapping[str, float]]]]) -> column.Shown:
    """One row per case and depth: what crosses the stack, and how many layers the first steps leave unchanged."""
    records = []
    for case, depth, runs in rows:
        record: dict[str, Any] = {"case": case, "depth": depth, "n": len(runs), "still": math.nan}
        for way, metric in SIZES.items():
            known = [run[metric] for run in runs if run.get(metric, 0) > 0]
            estimate = log10_interval(known) if known else None
            record |= {
                way: estimate.value if estimate else math.nan,
                f"{way}_low": estimate.low if estimate else math.nan,
                f"{way}_high": estimate.high if estimate else math.nan,
            }
        still = [run["still_layers"] for run in runs if "still_layers" in run]
        record["still"] = sum(still) / len(still) if still else math.nan
        records.append(record)
    columns = [
        column.words("case", "network"),
        column.whole("depth", "layers"),
        column.spread("signal", "signal ×", "signal_low", "signal_high", "1", hint="RMS of x_L over that of x₀"),
        column.spread(
            "gradient", "gradient ×", "gradient_low", "gradient_high", "1", hint="RMS of dL/dx₀ over that of dL/dx_L"
        ),
        column.number("still", "layers that stand still", "layers", "mean over seeds"),
        column.whole("n", "seeds"),
    ]
    return column.shown(name, title, pd.DataFrame(records), columns, note="Geometric means and 95 % over seeds.")

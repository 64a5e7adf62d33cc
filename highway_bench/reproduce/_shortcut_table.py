"""The table of ``shortcuts``: final training losses by shortcut."""

from __future__ import annotations

import math

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.format import quantity, three
from highway_bench.reproduce._shortcut_cases import IDENTITY, NORMED_GATE


def shown(table: pd.DataFrame, steps: int) -> column.Shown:
    columns = [
        column.words("case", "shortcut"),
        column.words("published", "published error", "110 layers, CIFAR-10; fail: above 20 %; 6.04 %: one run"),
        column.spread("loss", "final training loss", "low", "high", "nat", "geometric mean and 95 % over seeds"),
        column.percent("accuracy", "test accuracy"),
        column.whole("params", "parameters"),
        column.number("step_seconds", "step", "s", "median over seeds"),
        column.whole("n", "seeds"),
        column.whole("diverged", "diverged"),
    ]
    identity = 100 * (1 - float(table.set_index("case")["accuracy"][IDENTITY.name]))
    notes = [
        "Means leave out seeds that diverged.",
        f"After {steps} steps the test error of identity is {three(identity)} %." if not math.isnan(identity) else "",
        _cost(table),
    ]
    note = " ".join(filter(None, notes))
    return column.shown("shortcuts", "Shortcuts on MNIST-5k, 34 layers", table, columns, note=note)


def _cost(table: pd.DataFrame) -> str:
    """The cost of the counter-result's network relative to the one with identity shortcuts."""
    costs = table.set_index("case")[["params", "step_seconds"]].to_dict("index")
    gated, identity = costs[NORMED_GATE.name], costs[IDENTITY.name]
    size = float(gated["params"]) / float(identity["params"])
    seconds = [float(case["step_seconds"]) for case in (gated, identity)]
    if math.isnan(size) or any(map(math.isnan, seconds)):
        return ""
    return (
        f"The counter-result's network has {three(size)}× the parameters of the one with identity shortcuts; a step "
        f"takes {quantity(seconds[0], 's')} against {quantity(seconds[1], 's')}, in runs that are not paired (at "
        "110 layers 1.53× the parameters and 2.2× the time are published)."
    )

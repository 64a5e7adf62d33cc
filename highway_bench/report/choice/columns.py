"""The columns of the wide table: each with its type, its unit and its meaning, once for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pandas as pd

from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.success.ladder import TRAINS

WideRow = dict[str, Any]

REFERENCE: Final = "pre-norm"
"""The connection with which all others are compared, since plain fails at depth."""
BEST, NOT_SEPARATED, BEHIND = "best", "not separated", "behind"
"""A place among the connections that train: the lowest mean, not significantly above it, or above it."""
KNOWN, HERE = "known", "here"
LEARNS: Final = "learns"
"""Of an advice's short runs: the loss falls well below chance, and not every run reaches the threshold."""
RANKED: Final = (TRAINS, LEARNS)
"""Outcomes of connections that are compared."""
BITS: Final = ("language", "code")
"""Data sets whose held-out loss is in bits a byte."""
AGREES, CONTRADICTS = "agrees", "contradicts"
"""What repeated trainings say."""
EQUAL_BITS: Final = 0.01
EQUAL_SHARE: Final = 0.02
"""Differences within ± 0.01 bits a byte, or ± 2 % of a loss, are equal."""


class WideColumn(NamedTuple):
    """A column: its pandas ``type``, the ``unit`` of numbers, its ``meaning``, and whether it has an ``interval`` in
    the columns ``…_low`` and ``…_high``."""

    type: str
    unit: str
    meaning: str
    interval: bool = False


TEXT, NUMBER, WHOLE = "string", "float64", "Int64"
COLUMNS: Final = {
    "kind": WideColumn(TEXT, "", "kind of layer: the family with its options"),
    "data": WideColumn(TEXT, "", "data set"),
    "depth": WideColumn(WHOLE, "layer", "number of layers"),
    "connection": WideColumn(TEXT, "", "the block with its options"),
    "start": WideColumn(TEXT, "", "how the weights begin"),
    "protocol": WideColumn(TEXT, "", "what is equal among the connections of a depth"),
    "outcome": WideColumn(TEXT, "", "trains, learns, slow, fails, diverges, not measured, or undecided: missing runs"),
    "trains": WideColumn(WHOLE, "seed", "seeds that reach the threshold"),
    "seeds": WideColumn(WHOLE, "seed", "seeds that ended"),
    "trains_share": WideColumn(NUMBER, "1", "share of seeds that train; Wilson's interval", True),
    "held_out": WideColumn(NUMBER, "", "mean held-out loss, in bits a byte on text, else nat", True),
    "accuracy": WideColumn(NUMBER, "1", "mean held-out accuracy", True),
    "loss": WideColumn(NUMBER, "nat", "training loss of the last 5 % of steps, geometric mean", True),
    "reference": WideColumn(TEXT, "", "pre-norm's start that the differences are to"),
    "held_out_difference": WideColumn(NUMBER, "", "held-out loss minus pre-norm's, paired by seed, Holm", True),
    "held_out_word": WideColumn(TEXT, "", "better, worse, equal or undecided against pre-norm"),
    "held_out_behind": WideColumn(NUMBER, "", "held-out loss minus the best one's, paired by seed, Holm", True),
    "held_out_place": WideColumn(TEXT, "", "best, not separated or behind, by held-out loss"),
    "loss_ratio": WideColumn(NUMBER, "1", "training loss ÷ pre-norm's, paired by seed, Holm", True),
    "loss_word": WideColumn(TEXT, "", "better, worse, equal or undecided against pre-norm"),
    "loss_behind": WideColumn(NUMBER, "1", "training loss ÷ the lowest one, paired by seed, Holm", True),
    "loss_place": WideColumn(TEXT, "", "best, not separated or behind, by training loss"),
    "steps_saved": WideColumn(NUMBER, "1", "pre-norm's steps ÷ steps to its final loss, at least", True),
    "seconds_saved": WideColumn(NUMBER, "1", "steps_saved ÷ step_ratio", True),
    "fewer_steps": WideColumn(NUMBER, "1", "pre-norm's steps to the loss ÷ these", True),
    "less_time": WideColumn(NUMBER, "1", "fewer_steps ÷ step_ratio", True),
    "steps_by": WideColumn(TEXT, "", "power law or interpolated"),
    "not_reached": WideColumn(WHOLE, "seed", "seeds that never reach pre-norm's final loss"),
    "step_ratio": WideColumn(NUMBER, "1", "time of a training step ÷ pre-norm's, over processes", True),
    "timed_start": WideColumn(TEXT, "", "the start of the step that was timed"),
    "timed_on": WideColumn(TEXT, "", "machine of the step times"),
    "costs": WideColumn(TEXT, "", "where costs were measured: known or here"),
    "bytes": WideColumn(NUMBER, "B", "activations a layer saves for the backward pass"),
    "rate": WideColumn(NUMBER, "1", "learning rate"),
    "edge": WideColumn(TEXT, "", "lowest or highest where the rate is that of those tried"),
    "width": WideColumn(WHOLE, "1", "width"),
    "plain_width": WideColumn(WHOLE, "1", "plain's width, whose budget all have"),
    "optimiser": WideColumn(TEXT, "", "optimiser"),
    "batch": WideColumn(WHOLE, "1", "items of a training step"),
    "params": WideColumn(WHOLE, "1", "learned parameters"),
    "steps": WideColumn(WHOLE, "step", "training steps"),
    "machine": WideColumn(TEXT, "", "machine that trained"),
    "commit": WideColumn(TEXT, "", "commits that trained"),
    "source": WideColumn(TEXT, "", "known (committed) or here"),
    "repeated": WideColumn(TEXT, "", "agrees or contradicts: the same trainings in this store"),
}
"""Every column by name, in order."""
IDENTITY: Final = ("kind", "data", "depth", "connection", "start", "protocol")
"""The columns that tell rows apart."""


def typed(records: list[WideRow]) -> pd.DataFrame:
    """``records`` as the wide table: every column with its type, bounds after the column that they bound, and the units
    in ``attrs["units"]``."""
    types: dict[str, str] = {}
    units: dict[str, str] = {}
    for name, column in COLUMNS.items():
        for each in (name, f"{name}_low", f"{name}_high") if column.interval else (name,):
            types[each] = column.type
            units |= {each: column.unit} if column.type != TEXT else {}
    table = pd.DataFrame(records, columns=list(types)).astype(types)
    table.attrs["units"] = units
    return table


def of_interval(name: str, one: IntervalEstimate, as_shown: Callable[[float], float] = float) -> WideRow:
    """An estimate as columns of the wide table."""
    return bounds(name, *map(as_shown, (one.value, one.low, one.high)))


def bounds(name: str, value: float, low: float, high: float) -> WideRow:
    """A value and its interval as columns of the wide table."""
    return {name: value, f"{name}_low": low, f"{name}_high": high}

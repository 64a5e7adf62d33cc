"""What the first screen of a page shows: every ranking of every kind and depth, drawn and in words, as plain data.

The page's script only chooses among what is computed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pandas as pd

from highway_bench.declared import declared
from highway_bench.measure.paired import UNDECIDED
from highway_bench.measure.statistics import wilson
from highway_bench.provenance.machine import labels
from highway_bench.report.choice.answers import plain_texts, this_machine
from highway_bench.report.choice.columns import BEHIND, BEST, BITS, CONTRADICTS, HERE, NOT_SEPARATED, RANKED
from highway_bench.report.choice.lines import costs, sentence
from highway_bench.report.choice.ranking import (
    CRITERIA,
    Criterion,
    LayerKind,
    Ranking,
    depths_of,
    every_ranking,
    kinds_of,
)
from highway_bench.report.format import NONE, between, estimate, signed, three
from highway_bench.success.ladder import DIVERGES, FAILS, SLOW

ScreenData = dict[str, Any]
SYMBOLS: Final = {BEST: "★", NOT_SEPARATED: "☆", BEHIND: "○", SLOW: "–", FAILS: "×", DIVERGES: "∞", UNDECIDED: "?"}
"""The symbol of a cell of the overview, by place or outcome."""


def screen(table: pd.DataFrame, kinds: Sequence[LayerKind] = ()) -> ScreenData:
    """The first screen of the wide ``table``, of all its kinds unless some are given: ``kinds`` with their depths and
    rankings, ``criteria``, ``connections`` with equation and source, and the ``overview``."""
    found = {kind: {depth: every_ranking(table, kind, depth) for depth in depths_of(table, kind)}
             for kind in kinds or kinds_of(table)}  # fmt: skip
    entries = {entry["name"]: entry for entry in declared("blocks")}
    texts = plain_texts()
    named = sorted({row.partition(" ")[0] for row in table["connection"]})
    return {
        "here": this_machine(table),
        "criteria": [{"name": one.name, "label": one.label} for one in CRITERIA.values()],
        "kinds": [_kind(kind, by_depth) for kind, by_depth in found.items()],
        "connections": {
            name: {key: str(entries[name].get(key, "")) for key in ("equation", "source")}
            | {"code": texts.get(name, {})}
            for name in named
            if name in entries
        },
        "overview": overview([by["held-out"] for by_depth in found.values() for by in by_depth.values()]),
    }


def _kind(kind: LayerKind, found: Mapping[int, Mapping[str, Ranking]]) -> ScreenData:
    first = next(iter(found.values()))["held-out"].rows[0]
    between_depths = {
        f"{one}-{other}": {what: sentence([found[one][what], found[other][what]], one) for what in CRITERIA}
        for one, other in pairwise(found)
    }
    return {
        "name": kind.name,
        "label": kind.label,
        "also": kind.also,
        "protocol": first["protocol"],
        "depths": [_depth(kind, depth, by) for depth, by in found.items()],
        "between": between_depths,
    }


def _depth(kind: LayerKind, depth: int, by: Mapping[str, Ranking]) -> ScreenData:
    every = by["held-out"].rows
    rows = {(row["connection"], row["start"]): row for one in by.values() for row in one.rows}
    order = {key: number for number, key in enumerate(rows)}
    timed = sorted({row["timed_on"] for row in every if row["timed_on"]})
    return {
        "depth": depth,
        "timed": ", ".join(labels(timed).values()),
        "rows": [_row(kind, row) for row in rows.values()],
        "by": {what: _ranking(kind, one, order) for what, one in by.items()},
    }


def _row(kind: LayerKind, row: Mapping[str, Any]) -> ScreenData:
    """What a row shows whatever counts, in words."""
    unit = "bits" if kind.data in BITS else "nat"
    edge = f", the {row['edge']} tried" if row["edge"] else ""
    return {
        "name": row["connection"],
        "start": row["start"],
        "outcome": row["outcome"],
        "here": row["source"] == HERE and not kind.protocol,
        "mark": "≠" if row["repeated"] == CONTRADICTS else "",
        **costs(row),
        "seeds": f"{row['trains']}/{row['seeds']}" if row["seeds"] else NONE,
        "sorted": [row["held_out"], row["step_ratio"], row["bytes"], row["trains_share"]],
        "facts": [
            (name, text)
            for name, text in (
                ("learning rate", "" if row["rate"] is None else f"{row['rate']:g}{edge}"),
                ("held-out loss", _spread(row, "held_out", unit)),
                ("held-out accuracy", _spread(row, "accuracy", "%", 100)),
                ("training loss", _spread(row, "loss", "nat")),
                ("minus pre-norm's held-out loss", _spread(row, "held_out_difference", unit, word="held_out_word")),
                ("training step ÷ pre-norm's", _spread(row, "step_ratio", "")),
                ("× fewer steps to the same loss", _steps(row)),
                ("× fewer steps to pre-norm's loss, at least", _spread(row, "steps_saved", "")),
                ("width", "" if row["width"] is None else f"{row['width']}"),
                ("trained on", _machines(row["machine"])),
                ("the same seeds on this machine", row["repeated"]),
            )
            if text
        ],
    }


def _machines(names: str | None) -> str:
    return ", ".join(labels(names.split(", ")).values()) if names else ""


def _steps(row: Mapping[str, Any]) -> str:
    """How many times fewer steps than pre-norm's, and how that is known."""
    found = (row[f"fewer_steps{bound}"] for bound in ("", "_low", "_high"))
    return "" if row["fewer_steps"] is None else f"{estimate(*found)}, {row['steps_by']}"


def _spread(row: Mapping[str, Any], name: str, unit: str, times: float = 1.0, word: str = "") -> str:
    """A value with its interval, unit and word."""
    value, low, high = (row[f"{name}{bound}"] for bound in ("", "_low", "_high"))
    if value is None:
        return ""
    low, high = (None if one is None else times * one for one in (low, high))
    numbers = f"{three(times * value)} {between(low, high)}"
    return " ".join(filter(None, [numbers.strip(), unit, row[word] if word else ""]))


def _ranking(kind: LayerKind, one: Ranking, order: Mapping[tuple[str, str], int]) -> ScreenData:
    scale = Scale.of(one.trained, one.criterion)
    unit = {"held-out": "bits" if kind.data in BITS else "nat"}.get(one.criterion.name, "×")
    return {
        "say": sentence([one], one.depth),
        "take": one.take,
        "axis": one.criterion.axis,
        "ends": scale.ends(unit),
        "band": scale.band(one.trained),
        "rows": [
            [order[row["connection"], row["start"]], row["place"], *scale.drawn(row), _value(row, one.criterion)]
            for row in one.rows
        ],
    }


def _value(row: Mapping[str, Any], criterion: Criterion) -> str:
    """What is drawn, as text: a difference has its sign."""
    if row["value"] is None:
        missed = row["outcome"] in RANKED and criterion.rank == "seconds_saved" and row["not_reached"]
        return "not reached" if missed else row["outcome"] if row["outcome"] not in RANKED else NONE
    if criterion.name == "held-out":
        return "best" if row["place"] == BEST else signed(round(row["value"], 4), "+.3g")
    is_open = row["high"] == math.inf or row["low"] == 0
    return estimate(row["value"], row["low"], row["high"]) if is_open else f"{three(row['value'])}×"


class Scale:
    """An axis from ``low`` to ``high``, linear or logarithmic; positions are in per cent."""

    def __init__(self, low: float, high: float, logarithmic: bool) -> None:
        self.low, self.high, self.logarithmic = low, high, logarithmic

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], criterion: Criterion) -> Scale:
        """The axis of ``rows``: all values are on it, and so are intervals unless they are wider than the values."""
        logarithmic = criterion.name != "held-out"
        values = [row["value"] for row in rows] or [1.0 if logarithmic else 0.0]
        lows = [row["low"] for row in rows if row["low"] is not None] or values
        highs = [row["high"] for row in rows if row["high"] is not None] or values
        if logarithmic:
            spread = math.sqrt(max(values) / min(values)) * 1.1
            low, high = max(min(lows), min(values) / spread), min(max(highs), max(values) * spread)
            return cls(min(low, min(values)), max(high, max(values), low * 1.01), True)
        reach = (max(values) - min(values)) * 0.5 or 0.01
        return cls(max(min([*lows, 0.0]), -reach), min(max(highs), max(values) + reach) or reach, False)

    def position(self, value: float) -> float:
        """Where ``value`` is drawn, in per cent."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = (math.log(one) for one in (low, high, max(value, 1e-300)))
        return round(min(100.0, max(0.0, 100 * (value - low) / (high - low))), 1)

    def drawn(self, row: Mapping[str, Any]) -> list[float | None]:
        """The dot, the left end and the width of the interval of a row."""
        if row["value"] is None:
            return [None, None, None]
        dot = self.position(row["value"])
        if row["low"] is None or row["high"] is None or row["low"] == row["high"]:
            return [dot, None, None]
        left = self.position(row["low"])
        return [dot, left, round(self.position(row["high"]) - left, 1)]

    def band(self, rows: Sequence[Mapping[str, Any]]) -> list[float]:
        """Left end and width of what is not separated from the best."""
        near = [self.position(row["value"]) for row in rows if row["place"] in (BEST, NOT_SEPARATED)]
        return [round(min(near) - 1, 1), round(max(near) - min(near) + 2, 1)] if len(near) > 1 else [0, 0]

    def ends(self, unit: str) -> list[str]:
        """The values at both ends of the axis."""
        if self.logarithmic:
            return [f"{three(self.low)}×", f"{three(self.high)}×"]
        return ["better ← 0" if self.low == 0 else signed(self.low, "+.2g"), f"{signed(self.high, '+.2g')} {unit}"]


def overview(found: Sequence[Ranking]) -> ScreenData:
    """Connections by kind and depth, from rankings: a symbol a cell, of the better start; marked where the starts
    differ."""
    cells: dict[str, dict[int, tuple[str, bool]]] = {}
    for number, one in enumerate(found):
        for row in one.rows:
            state = row["place"] or row["outcome"]
            state = UNDECIDED if state not in SYMBOLS and row["seeds"] else state
            if state in SYMBOLS:
                cells.setdefault(row["connection"], {})[number] = (state, row["differ"])
    goodness = {BEST: 4, NOT_SEPARATED: 3, BEHIND: 2, SLOW: 1}
    ordered = sorted(cells, key=lambda name: (-sum(goodness.get(state, 0) for state, _ in cells[name].values()), name))
    counts = {name: _counts([state for state, _ in cells[name].values()]) for name in ordered}
    trains = {name: wilson(one["trains"], one["measured"]).low for name, one in counts.items() if one["trains"]}
    robust = max(trains, key=lambda name: (trains[name], counts[name]["near"]), default=None)
    return {
        "columns": [{"kind": one.kind.name, "label": one.kind.label, "depth": one.depth} for one in found],
        "rows": [{"name": name, "cells": [_cell(cells[name].get(number)) for number in range(len(found))],
                  **counts[name]} for name in ordered],
        "robust": {"name": robust, **counts[robust]} if robust else None,
    }  # fmt: skip


def _counts(states: Sequence[str]) -> dict[str, int]:
    """At how many kinds and depths a connection was decided, trains, and is best or not separated from it."""
    near = sum(state in (BEST, NOT_SEPARATED) for state in states)
    return {
        "measured": len(states) - states.count(UNDECIDED),
        "trains": near + sum(state == BEHIND for state in states),
        "near": near,
    }


def _cell(found: tuple[str, bool] | None) -> ScreenData:
    state, differ = found or ("", False)
    return {"state": state.replace(" ", "-"), "symbol": SYMBOLS.get(state, "·"), "differ": differ}

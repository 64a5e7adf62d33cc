"""Finals: the trainings with fresh seeds at tuned rates, as rows have them, and those that a comparison makes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd

from highway_bench.cell import Cell, canonical
from highway_bench.frames.rows import block_label, fresh, groups, rows_of
from highway_bench.plan.settings import FRESH_SEEDS
from highway_bench.results.schema import OUTCOMES, PROTOCOL
from highway_bench.studies.decide.candidate import TUNING_SEEDS, Candidate, Trainings, starts_of
from highway_bench.studies.decide.part import Protocol
from highway_bench.success.rates import counting

SETTING: Final = (
    "family",
    "family_options",
    "nominal_width",
    "match",
    "batch_size",
    "seq_len",
    "dataset",
    "dtype",
    "device",
    "recipe",
)
"""Columns that are equal for connections that are compared. ``recipe`` is without its learning rate."""
RUNG: Final = (*SETTING, "depth", "block")
FINAL: Final = (*RUNG, "start", "rate", "seed", "loss", "success", "machine", "torch", "time_utc")
CHECK_SEEDS: Final = (0, 1, 2)


def finals(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per final training in ``rows``, the rows of a store or of exported files, of the current protocol.

    Columns: ``FINAL``. ``block`` is the label with options and start; ``loss`` is the final training loss, NaN if the
    run diverged, and ``success`` is 0 or 1. Runs that failed (out of memory, of time) are left out. If a connection has
    finals at several rates, those at the rate that counts are kept (see ``success.rates``).
    """
    rows = rows[
        rows["task"].eq("trainability")
        & rows["protocol"].eq(PROTOCOL)
        & rows["axis"].eq("")
        & rows["trial"].isna()
        & rows["metric"].isin(["final_loss", "success"])
        & rows["status"].isin(list(OUTCOMES))
    ]
    records: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows_of(rows.sort_values("time_utc", kind="stable")):
        recipe = json.loads(row["recipe"])
        if not recipe.pop("own_rate", False):
            continue
        row |= {"rate": float(recipe.pop("rate")), "recipe": canonical(recipe), "block": label(row)}
        row |= {"seq_len": None if pd.isna(row["seq_len"]) else int(row["seq_len"])}
        key = tuple(row[name] for name in (*RUNG, "rate", "seed"))
        final = records.setdefault(key, {name: row.get(name) for name in FINAL})
        final |= {name: row[name] for name in ("machine", "torch", "time_utc")}
        final["loss" if row["metric"] == "final_loss" else "success"] = row["value"]
    table = pd.DataFrame(list(records.values()), columns=list(FINAL))
    counted = [part[part["rate"] == _counting(part)] for _, part in groups(table, RUNG)]
    ordered = ["family", "dataset", "depth", "block", "seed"]
    return pd.concat(counted).sort_values(ordered, kind="stable", ignore_index=True) if counted else table


def _counting(runs: pd.DataFrame) -> float:
    """The learning rate that counts of the finals of one connection and depth."""
    newest_last = runs.sort_values("time_utc", kind="stable").drop_duplicates("rate", keep="last")["rate"]
    at = {rate: runs[runs["rate"] == rate] for rate in newest_last}
    return counting({rate: fresh(part["success"], part["loss"].isna()) for rate, part in at.items()})


def alike(table: pd.DataFrame, values: Mapping[str, Any], columns: Sequence[str]) -> pd.DataFrame:
    """The rows of ``table`` with these ``values`` of ``columns``; a null equals a null."""
    same = pd.Series(True, index=table.index)
    for name in columns:
        same &= table[name].isna() if values[name] is None else table[name].eq(values[name])
    return table[same]


def label(row: Mapping[str, Any]) -> str:
    """A connection's name with its options and its start: ``highway · depth-aware``."""
    start = row["start"]
    return block_label(row["block"], row["block_options"], *([] if pd.isna(start) else [start]))


def instead_of(reference: Candidate, block: str) -> Candidate:
    """``block`` at its first start instead of ``reference``: same family, data, budget, recipe, depths and rates."""
    template = reference.template.but(block=block, start=None, width=reference.template.nominal_width)
    return starts_of(template, reference.depths, reference.first)[0]


def check_cells(reference: Candidate, committed: pd.DataFrame) -> list[Cell]:
    """Three seeds of the reference at the shallowest depth of the ``committed`` finals, at the rate chosen there; none
    if it was not committed."""
    columns = reference.template.columns()
    own = alike(committed, columns | {"block": label(columns)}, (*SETTING, "block"))
    depths = [depth for depth in reference.depths if depth in set(own["depth"])]
    if not depths:
        return []
    rate = float(own.loc[own["depth"] == depths[0], "rate"].iloc[0])
    return [reference.run(depths[0], rate, seed) for seed in CHECK_SEEDS]


def first_seconds(candidates: Sequence[Candidate], check: pd.DataFrame, workers: int) -> float:
    """The seconds that the first depth takes: each candidate tries its rates and trains fresh seeds, at the pace of the
    reference's steps in its family. ``check`` are the rows of the reference; 0 where they have no step times."""
    steps = check[check["metric"].eq("step_seconds") & check["value"].notna()]
    pace = (steps["value"].astype(float) / steps["depth"].astype(float)).groupby(steps["family"].astype(str)).median()
    first = min(depth for one in candidates for depth in one.depths)
    further = 2 * (len(TUNING_SEEDS) - 1) + FRESH_SEEDS  # at least: runs of the best two rates, and of the best one
    seconds = 0.0
    for one in candidates:
        if first in one.depths:
            steps_in_all = (len(one.first) + further) * one.template.recipe["steps"]
            seconds += steps_in_all * first * float(pace.get(one.template.family, 0.0))
    return seconds / workers


@dataclass(frozen=True)
class TimedProtocol(Protocol):
    """A part that begins a depth only if it will end before ``until``, a moment of ``time.monotonic``.

    A depth takes as long as it is deep: at the pace of the depth before, and no less than by ``first``, the predicted
    seconds of the first depth. Of cells, ``left`` gives the number that are still to be trained: what is stored takes
    no time. ``begun`` has the moments at which depths were begun.
    """

    until: float
    first: float = 0.0
    left: Callable[[Sequence[Cell]], int] = len
    begun: dict[int, float] = field(default_factory=dict)

    def pending(self, trainings: Trainings) -> list[Cell]:
        depth, cells = self.next_depth(trainings)
        return cells if cells and (depth in self.begun or not self.left(cells) or self.begin(depth)) else []

    def begin(self, depth: int) -> bool:
        """Begin a depth, unless it would end too late; return whether it is begun."""
        now = time.monotonic()
        last = max(self.begun, default=depth)
        pace = (now - self.begun[last]) / last if self.begun else 0.0
        shallowest = min(rung for one in self.candidates for rung in one.depths)
        if now + depth * max(pace, self.first / shallowest) > self.until:
            return False
        self.begun[depth] = now
        return True

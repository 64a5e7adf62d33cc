"""Finals: the trainings with fresh seeds at tuned learning rates, as a protocol of ``decide`` leaves them in rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.frames.rows import block_label, fresh, groups, rows_of
from highway_bench.results.schema import OUTCOMES, PROTOCOL
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

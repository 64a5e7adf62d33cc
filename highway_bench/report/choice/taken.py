"""What to take for print: a row for each kind of layer and depth."""

from __future__ import annotations

from typing import Any

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.choice.columns import AGREES, CONTRADICTS, HERE
from highway_bench.report.choice.joined import COLUMN
from highway_bench.report.choice.lines import give_or_take, how_sure
from highway_bench.report.choice.ranking import Ranking, rankings_of
from highway_bench.report.columns import Shown
from highway_bench.report.format import NONE, quantity, three


def measured_here(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the kinds and depths of which a store has trainings."""
    here = table["seeds"].gt(0) & (table["source"].eq(HERE) | table["repeated"].notna())
    return table[here.groupby([table[name] for name in COLUMN]).transform("any")]


def taken(table: pd.DataFrame, *, most: int | None = None) -> Shown:
    """Which connection to take by held-out score, with what it costs and how sure that is, by kind and depth."""
    found = rankings_of(table)
    repeated = [column.words("here", "repeated here")] if table["repeated"].notna().any() else []
    return column.shown(
        "taken",
        "Which connection to take, by held-out score",
        pd.DataFrame([_row(one) for one in found]),
        [
            column.words("kind", "kind of layer"),
            column.whole("depth", "depth"),
            column.words("take", "take"),
            column.words("sure", "how sure"),
            column.words("held_out", "held-out loss"),
            column.words("step", "step ÷ pre-norm's"),
            column.words("bytes", "bytes a layer"),
            column.words("seeds", "seeds that train"),
            *repeated,
        ],
        most=most,
    )


def _row(one: Ranking) -> dict[str, Any]:
    said = {row["connection"]: row["repeated"] for row in one.rows if row["repeated"]}
    contradicting = [name for name, word in said.items() if word == CONTRADICTS]
    here = f"{' '.join(contradicting[:2])} {CONTRADICTS}" if contradicting else AGREES if said else NONE
    row: dict[str, Any] = {"kind": one.kind.label, "depth": one.depth, "take": "none trains", "here": here}
    if not one.take:
        return row
    best = one.trained[0]
    return row | {
        "take": f"{best['connection']}, {best['start']}",
        "sure": how_sure(one),
        "held_out": three(best["held_out"]),
        "step": give_or_take(best["step_ratio"], best["step_ratio_low"], best["step_ratio_high"]),
        "bytes": NONE if best["bytes"] is None else quantity(best["bytes"], "B"),
        "seeds": f"{best['trains']} of {best['seeds']}",
    }

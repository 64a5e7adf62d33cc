"""Answers for print: one as lines of text for a terminal, and a table of what to take by kind of layer and depth.

An answer has at most twelve lines of at most 100 characters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.report import columns as column
from highway_bench.report.choice.answers import COLUMN
from highway_bench.report.choice.columns import AGREES, BITS, CONTRADICTS, HERE, RANKED
from highway_bench.report.choice.ranking import Criterion, LayerKind, Ranking, depths_of, ranking, rankings_of
from highway_bench.report.columns import TextTable
from highway_bench.report.format import NONE, counted, estimate, quantity, three

ROWS: Final = {1: 7, 2: 3}
"""The most rows of connections, by the number of depths that are shown."""


def rankings(table: pd.DataFrame, kind: LayerKind, depth: int, what: str) -> list[Ranking]:
    """The ranking at ``depth``, or at the measured depths on both sides of it, or at the last one.

    Raises ``NothingMeasured`` for a kind without rows, and ``BadInput`` for a depth below 1."""
    if depth < 1:
        raise BadInput(f"depth must be at least 1, not {depth}")
    depths = depths_of(table, kind)
    if not depths:
        raise NothingMeasured(f"{kind.label} is not measured yet")
    nearest = {
        max((one for one in depths if one <= depth), default=depths[0]),
        min((one for one in depths if one >= depth), default=depths[-1]),
    }
    return [ranking(table, kind, one, what) for one in sorted(nearest)]


def sentence(found: Sequence[Ranking], depth: int) -> str:
    """What to take, in at most 25 words."""
    where = "" if depth in [one.depth for one in found] else f"Not measured at {depth} layers. "
    if len(found) == 1:
        (one,) = found
        where += f"At {one.depth}: " if where else ""
        if not one.take:
            return f"{where}Not known: no connection trains."
        return f"{where}Take {one.take} at this size ({one.trained[0]['start']} start). {how_sure(one)}."
    good = [{one.take, *one.as_good} for one in found]
    both = [name for name in (found[0].take, found[1].take, *found[0].as_good) if all(name in names for names in good)]
    at = f"{found[0].depth} and {found[1].depth}"
    if not both:
        return f"{where}{at} layers have different answers."
    others = len(set(both)) - 1
    return f"{where}Good at {at}: take {both[0]}." + (f" {counted(others, 'other')} may be as good." if others else "")


def how_sure(one: Ranking) -> str:
    """How sure the first place is, in at most six words."""
    others = len(one.trained) - 1
    if not others:
        ranked = [row["outcome"] in RANKED for row in one.rows if row["seeds"]]
        return "It alone trains" if sum(ranked) == 1 < len(ranked) else "No other known"
    if not one.as_good:
        return f"{others} others train, all behind" if others > 1 else "The other one is behind"
    return f"{counted(len(one.as_good), 'other')} may be as good"


def answer_lines(table: pd.DataFrame, kind: LayerKind, depth: int, what: str) -> list[str]:
    """The answer for a kind at a depth, by a criterion's name, as at most twelve lines."""
    found = rankings(table, kind, depth, what)
    criterion = found[0].criterion
    head = ["depth", "connection", criterion.axis, "× step", "memory", "train", "rate"]
    rows = [head]
    for one in found:
        rows += [
            [str(one.depth) if number == 0 else "", *cells(row, criterion)]
            for number, row in enumerate(one.rows[: ROWS[len(found)]])
        ]
    left = sum(max(0, len(one.rows) - ROWS[len(found)]) for one in found)
    protocol = next((row["protocol"] for one in found for row in one.rows), "")
    setting = ", ".join(part for part in protocol.split(", ") if "width" in part or "steps" in part)
    unit = "bits a byte" if kind.data in BITS else "nat"
    trained = [row for one in found for row in one.trained][:1]
    take = [f"highway-bench export {row['connection']} --depth {depth} --start {row['start']}" for row in trained]
    return [
        f"{kind.label}, depth {depth}, by {criterion.label}",
        sentence(found, depth),
        *aligned(rows),
        f"{f'{left} more. ' if left else ''}{kind.data}, {unit}, {setting}; step ÷ pre-norm's.",
        *take,
    ]


def cells(row: dict[str, Any], criterion: Criterion) -> list[str]:
    """The cells of a connection in a terminal."""
    drawn = row["outcome"]
    if row["value"] is not None:
        known = row["low"] is not None and not row["low"] == row["value"] == row["high"]
        drawn = estimate(row["value"], row["low"], row["high"]) if known else three(row["value"])
    elif row["outcome"] in RANKED:
        drawn = "not reached" if row["not_reached"] and criterion.rank == "seconds_saved" else NONE
    return [
        f"{row['connection']} · {row['start']}",
        drawn,
        *costs(row).values(),
        f"{row['trains']}/{row['seeds']}" if row["seeds"] else NONE,
        f"{row['rate']:g}" if row["rate"] is not None else NONE,
    ]


def costs(row: Mapping[str, Any]) -> dict[str, str]:
    """The ``step`` of a connection over pre-norm's with the larger half of its interval, ``1.12 ± 0.05`` or ``1`` for
    that of pre-norm to itself, and the ``bytes`` of a layer."""
    value, low, high = (row[f"step_ratio{bound}"] for bound in ("", "_low", "_high"))
    step = NONE
    if not (value is None or low is None or high is None or math.isnan(value)):
        step = "1" if low == high == 1 else f"{value:.2f} ± {max(value - low, high - value):.2f}"
    return {"step": step, "bytes": NONE if row["bytes"] is None else quantity(row["bytes"], "B")}


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows as lines with aligned columns; all but the first two columns are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = [
            cell.ljust(width) if number < 2 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(padded).rstrip()


def measured_here(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the kinds and depths of which a store has trainings."""
    here = table["seeds"].gt(0) & (table["source"].eq(HERE) | table["repeated"].notna())
    return table[here.groupby([table[name] for name in COLUMN]).transform("any")]


def taken(table: pd.DataFrame, *, narrow: bool = False) -> TextTable:
    """Which connection to take by held-out score, with what it costs and how sure that is, by kind and depth;
    ``narrow`` has the columns that 100 characters hold."""
    found = rankings_of(table)
    held_out = [column.words("held_out", "held-out loss")]
    bytes_and_seeds = [column.words("bytes", "bytes a layer"), column.words("seeds", "seeds that train")]
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
            *([] if narrow else held_out),
            column.words("step", "step ÷ pre-norm's"),
            *([] if narrow else bytes_and_seeds),
            *repeated,
        ],
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
        **costs(best),
        "seeds": f"{best['trains']} of {best['seeds']}",
    }

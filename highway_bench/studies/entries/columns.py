"""What an entry's rows say: the block against pre-norm in each column, and whether pre-norm trained as it should."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

import pandas as pd
from scipy import stats

from highway_bench.errors import BadInput, HighwayBenchError
from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.measure.paired import ALPHA, UNKNOWN, BySeed, compare
from highway_bench.measure.statistics import Interval, IntervalEstimate
from highway_bench.report.choice.columns import BITS, EQUAL_BITS, EQUAL_SHARE, RANKED, REFERENCE
from highway_bench.report.choice.table import finals_of, wide_table
from highway_bench.studies.entries.protocol import EntryColumn

NO_BOUNDS: Final = Interval(math.nan, math.nan)


class ReferenceDisagrees(HighwayBenchError):
    """Pre-norm's losses are not the committed ones here, so a block that is trained here cannot be compared."""


@dataclass(frozen=True)
class ColumnResult:
    """A block in one column.

    ``word`` is better, worse, equal or undecided, or what became of it, or why it was not measured. ``difference`` is
    that of its held-out loss to pre-norm's in per cent, paired by seed, with 95 % for all columns together. ``step`` is
    the ratio of step times with its interval over processes."""

    label: str
    word: str
    difference: IntervalEstimate = UNKNOWN
    trains: int = 0
    seeds: int = 0
    step: float = math.nan
    step_bounds: Interval = NO_BOUNDS
    start: str = ""
    rate: float = math.nan


def results_of(
    block: str, columns: Sequence[EntryColumn], missing: Mapping[str, str], results: Results
) -> list[ColumnResult]:
    """The block in each column but those that are ``missing``, which have a reason instead.

    Raises ``ReferenceDisagrees`` where pre-norm does not train as it should, and ``BadInput`` for a column without
    rows."""
    table, finals = wide_table(results), finals_of(results)
    alpha = ALPHA / max(1, len(columns) - len(missing))
    return [
        ColumnResult(one.label, missing[one.label])
        if one.label in missing
        else _result(block, one, table, finals, alpha)
        for one in columns
    ]


def held_out(table: pd.DataFrame, column: EntryColumn, block: str) -> dict[int, float]:
    """The held-out losses of a connection in a column of ``finals_of``, by seed; infinite where a run diverged."""
    return {row["seed"]: math.inf if math.isnan(row["held_out"]) else row["held_out"]
            for row in _of(table, column, block)}  # fmt: skip


def _result(block: str, column: EntryColumn, table: pd.DataFrame, finals: pd.DataFrame, alpha: float) -> ColumnResult:
    rows = [row for row in _of(table, column, block) if row["seeds"]]
    base, own = (_finite(held_out(finals, column, name)) for name in (REFERENCE, block))
    check(column, base, alpha)
    if len(rows) != 1:
        raise BadInput(f"{block} has finals at {len(rows)} starts in {column.label}, and one is asked for")
    (row,) = rows
    found = ColumnResult(
        column.label,
        row["outcome"],
        trains=row["trains"],
        seeds=row["seeds"],
        step=row["step_ratio"],
        step_bounds=Interval(row["step_ratio_low"], row["step_ratio_high"]),
        start=row["start"],
        rate=row["rate"],
    )
    if row["outcome"] not in RANKED:
        return found
    level = fmean(base.values())
    values = {
        name: {seed: 100 * loss / level for seed, loss in losses.items()}
        for name, losses in ((block, own), (REFERENCE, base))
    }
    within = 100 * (EQUAL_BITS / level if column.kind.data in BITS else EQUAL_SHARE)
    against = compare(values, REFERENCE, alpha, equal_within=within)[block]
    return replace(found, word=against.word, difference=against.difference)


def check(column: EntryColumn, here: BySeed, alpha: float) -> None:
    """Raise ``ReferenceDisagrees`` if pre-norm's held-out losses ``here`` differ from the committed ones. The runs are
    not paired: with another torch or machine a seed may give another order of sums."""
    known = column.committed()
    p = stats.ttest_ind(list(here.values()), list(known.values())).pvalue if len(here) > 1 else 0.0
    if not p > alpha and here != {seed: known.get(seed) for seed in here}:
        raise ReferenceDisagrees(
            f"nothing is compared: {REFERENCE}'s held-out loss in {column.label} is "
            f"{fmean(here.values()) if here else math.nan:.4g} here, and {fmean(known.values()):.4g} in the package"
        )
    if not here:
        raise ReferenceDisagrees(f"nothing is compared: {REFERENCE} did not train in {column.label}")


def _finite(losses: BySeed) -> dict[int, float]:
    return {seed: loss for seed, loss in losses.items() if math.isfinite(loss)}


def _of(table: pd.DataFrame, column: EntryColumn, block: str) -> list[dict[str, Any]]:
    """The rows of a connection in a column."""
    own = table[table["connection"].eq(block)]
    for name in ("kind", "data", "depth", "protocol"):
        own = own[own[name].eq(column.row[name])]
    return rows_of(own)

"""What an entry's rows say: in each column the block against pre-norm's committed finals, and the check of pre-norm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pandas as pd
from scipy import stats

from highway_bench.errors import HighwayBenchError
from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.measure.paired import ALPHA, UNKNOWN, BySeed, compare
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.report.choice.answers import known_finals
from highway_bench.report.choice.columns import EQUAL_SHARE, IDENTITY, RANKED, REFERENCE
from highway_bench.report.choice.table import finals_of, wide_table
from highway_bench.studies.entries.protocol import EntryColumn

NOT_FOR_IT = "not for this layer"


class ReferenceDisagrees(HighwayBenchError):
    """Pre-norm's losses are not the committed ones here, so a block that is trained here cannot be compared."""


@dataclass(frozen=True)
class ColumnResult:
    """A block in one column. ``word`` is better, worse, equal or undecided, or what became of it, or why nothing is
    known; ``difference`` is that of its held-out loss to pre-norm's in per cent, paired by seed, with 95 % for all
    columns together; ``step`` is the ratio of step times."""

    label: str
    address: str
    word: str
    difference: IntervalEstimate = UNKNOWN
    trains: int = 0
    seeds: int = 0
    step: IntervalEstimate = UNKNOWN
    start: str = ""
    rate: float = math.nan


def results_of(block: str, columns: Sequence[EntryColumn], results: Results) -> list[ColumnResult]:
    """The block in each column. Raises ``ReferenceDisagrees`` where the check of pre-norm fails."""
    table, finals = wide_table(results), finals_of(results)
    measured = [one for one in columns if len(_row(table, one, block))]
    alpha = ALPHA / max(1, len(measured))
    for one in measured:
        check(one, _scores(finals, one, REFERENCE), alpha)
    return [_result(block, one, table, finals, alpha) for one in columns]


def check(column: EntryColumn, here: BySeed, alpha: float) -> None:
    """Raise ``ReferenceDisagrees`` if pre-norm's held-out losses ``here`` differ from the committed ones. The runs are
    not paired: with another torch or machine a seed may give another order of sums."""
    known = committed(column)
    p = stats.ttest_ind(list(here.values()), list(known.values())).pvalue if len(here) > 1 else 0.0
    if not p > alpha:
        raise ReferenceDisagrees(
            f"nothing is compared: {REFERENCE}'s held-out loss in {column.label} is "
            f"{fmean(here.values()) if here else math.nan:.4g} here, and {fmean(known.values()):.4g} in the package"
        )


def committed(column: EntryColumn) -> dict[int, float]:
    """Pre-norm's committed held-out losses in a column, by seed."""
    finals = known_finals()
    own = finals[(finals[list(IDENTITY)] == [column.row[name] for name in IDENTITY]).all(axis=1)]
    return {row["seed"]: row["held_out"] for row in rows_of(own[own["held_out"].notna()])}


def _result(block: str, column: EntryColumn, table: pd.DataFrame, finals: pd.DataFrame, alpha: float) -> ColumnResult:
    rows = _row(table, column, block)
    if not rows:
        return ColumnResult(column.label, column.address, column.missing or NOT_FOR_IT)
    row, known = rows[0], committed(column)
    found = ColumnResult(
        column.label,
        column.address,
        row["outcome"],
        trains=row["trains"],
        seeds=row["seeds"],
        step=IntervalEstimate(row["step_ratio"], row["step_ratio_low"], row["step_ratio_high"], row["seeds"]),
        start=row["start"],
        rate=row["rate"],
    )
    if row["outcome"] not in RANKED:
        return found
    level = fmean(known.values())
    share = {name: {seed: 100 * loss / level for seed, loss in losses.items()}
             for name, losses in ((block, _scores(finals, column, block)), (REFERENCE, known))}  # fmt: skip
    against = compare(share, REFERENCE, alpha, equal_within=100 * EQUAL_SHARE)[block]
    return _with(found, word=against.word, difference=against.difference)


def _with(result: ColumnResult, **words: Any) -> ColumnResult:
    return ColumnResult(**{**vars(result), **words})


def _row(table: pd.DataFrame, column: EntryColumn, block: str) -> list[Mapping[str, Any]]:
    return list(_of(table[table["seeds"].gt(0)], column, block))


def _scores(finals: pd.DataFrame, column: EntryColumn, block: str) -> dict[int, float]:
    """The held-out losses of a connection in a column, by seed."""
    return {row["seed"]: row["held_out"] for row in _of(finals, column, block) if not math.isnan(row["held_out"])}


def _of(table: pd.DataFrame, column: EntryColumn, block: str) -> Iterator[dict[str, Any]]:
    """The rows of a connection in a column."""
    wanted = {name: column.row[name] for name in ("kind", "data", "depth", "protocol")} if column.row else {}
    own = table[table["connection"].eq(block)]
    for name, value in wanted.items():
        own = own[own[name].eq(value)]
    yield from rows_of(own) if wanted else ()

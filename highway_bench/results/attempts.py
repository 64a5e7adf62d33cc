"""Attempts: of several attempts at one cell, which rows are stored. A failure never replaces a result."""

from __future__ import annotations

from collections.abc import Sequence

from highway_bench.results.schema import LATER_ATTEMPT, OUTCOMES, RANK, Row, Status

UNMEASURED = ("value", "low", "high", "n", "samples", "params", "flops_per_item")

Attempt = list[Row]


def stored(attempts: Sequence[Attempt]) -> list[Row]:
    """The rows to store of ``attempts`` at one cell, oldest first.

    They are those of the last attempt that came to a result; then, if attempts after it came to none (a failure, a
    skip), one row on the axis ``LATER_ATTEMPT`` for the last of these. Without any result they are the last attempt's.
    """
    results = [place for place, rows in enumerate(attempts) if has_result(rows)]
    if not results:
        return attempts[-1]
    later = attempts[results[-1] + 1 :]
    return [*attempts[results[-1]], *([] if not later else [_one_row(later[-1])])]


def attempts_in(rows: Sequence[Row]) -> list[Attempt]:
    """The attempts that the stored ``rows`` of one cell tell of, oldest first: the inverse of ``stored``."""
    later = [row for row in rows if row["axis"] == LATER_ATTEMPT]
    return [attempt for attempt in ([row for row in rows if row["axis"] != LATER_ATTEMPT], later) if attempt]


def has_result(rows: Attempt) -> bool:
    """Whether an attempt came to a result: no row of it failed, and not all were skipped."""
    return _telling(rows)["status"] in OUTCOMES


def _one_row(rows: Attempt) -> Row:
    return _telling(rows) | {"axis": LATER_ATTEMPT, "index": 0.0} | dict.fromkeys(UNMEASURED)


def _telling(rows: Attempt) -> Row:
    """The row whose status stands for the attempt."""
    return min(rows, key=lambda row: RANK.index(Status(row["status"])))

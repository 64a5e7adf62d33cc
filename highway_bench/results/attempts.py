"""Attempts: of several attempts at one cell, which rows are stored. A failure never replaces a result.

A result is more than a part of one (some of its metrics failed), and a part is more than nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from highway_bench.results.schema import LATER_ATTEMPT, OUTCOMES, RANK, Row, Status

UNMEASURED = ("value", "low", "high", "n", "samples", "params", "flops_per_item")

Attempt = list[Row]


def stored(attempts: Sequence[Attempt]) -> list[Row]:
    """The rows to store of ``attempts`` at one cell, oldest first.

    They are those of the last attempt that measured as much as any; then, if attempts after it measured less, one row
    on the axis ``LATER_ATTEMPT`` for the last of these.
    """
    place = max(range(len(attempts)), key=lambda place: (_measured(attempts[place]), place))
    return [*attempts[place], *(_one_row(rows) for rows in attempts[place + 1 :][-1:])]


def attempts_in(rows: Sequence[Row]) -> list[Attempt]:
    """The attempts that the stored ``rows`` of one cell tell of, oldest first: the inverse of ``stored``."""
    later = [row for row in rows if row["axis"] == LATER_ATTEMPT]
    return [attempt for attempt in ([row for row in rows if row["axis"] != LATER_ATTEMPT], later) if attempt]


def _measured(rows: Attempt) -> int:
    """2 for a result: no row of it failed, and not all were skipped. 1 for a part of one: some row did not fail. 0 for
    nothing: a failure or a skip as a whole."""
    if _telling(rows)["status"] in OUTCOMES:
        return 2
    return 1 if any(row["status"] in OUTCOMES for row in rows) else 0


def _one_row(rows: Attempt) -> Row:
    return _telling(rows) | {"axis": LATER_ATTEMPT, "index": 0.0} | dict.fromkeys(UNMEASURED)


def _telling(rows: Attempt) -> Row:
    """The row whose status is the attempt's."""
    return min(rows, key=lambda row: RANK.index(Status(row["status"])))

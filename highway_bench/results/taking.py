"""Taking: which rows a store keeps of several attempts at a cell, and what it takes from other stores.

A failure never replaces a result. A whole result counts more than a part of one (some of its metrics failed), and a
part more than no value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from highway_bench.results.schema import LATER_ATTEMPT, OUTCOMES, Row, worst

UNMEASURED = ("value", "low", "high", "n", "samples", "paired", "params", "flops_per_item")

Attempt = list[Row]


def stored(attempts: Sequence[Attempt]) -> list[Row]:
    """The rows to store of ``attempts`` at one cell, which are given oldest first.

    These are the rows of the attempt that measured most, the last of several such. If later attempts measured less,
    one row on the axis ``LATER_ATTEMPT`` follows for the last of them.
    """
    best = max(range(len(attempts)), key=lambda index: (_measured(attempts[index]), index))
    return [*attempts[best], *(_one_row(rows) for rows in attempts[best + 1 :][-1:])]


def attempts_in(rows: Sequence[Row]) -> list[Attempt]:
    """The attempts behind the stored ``rows`` of one cell, oldest first: the inverse of ``stored``."""
    later = [row for row in rows if row["axis"] == LATER_ATTEMPT]
    return [attempt for attempt in ([row for row in rows if row["axis"] != LATER_ATTEMPT], later) if attempt]


def _measured(rows: Attempt) -> int:
    """How much an attempt measured. 2 is a whole result: no row failed, and not all were skipped. 1 is a part of one:
    some row has an outcome. 0 is no value: a failure or a skip as a whole."""
    if _status_row(rows)["status"] in OUTCOMES:
        return 2
    return 1 if any(row["status"] in OUTCOMES for row in rows) else 0


def _one_row(rows: Attempt) -> Row:
    return _status_row(rows) | {"axis": LATER_ATTEMPT, "index": 0.0} | dict.fromkeys(UNMEASURED)


def _status_row(rows: Attempt) -> Row:
    """The row whose status is the attempt's."""
    status = worst(row["status"] for row in rows)
    return next(row for row in rows if row["status"] == status)


class Rows(Protocol):
    """Cells and runs that a store can take: another store, or an exported file."""

    def times(self) -> dict[str, set[str]]:
        """By digest, the times of the last result and of a later attempt that measured less."""

    def values(self, digests: Collection[str]) -> Iterable[tuple[Any, ...]]:
        """The rows of these cells, each as its values in the order of ``COLUMNS``."""

    def runs(self) -> dict[str, dict[str, Any]]:
        """Every run's provenance by its id."""


@dataclass(frozen=True)
class MergeCounts:
    """Cells of another store: ``added`` here, ``replaced`` what was here, the ``same`` as here, or ``older`` than here
    and left out."""

    added: int = 0
    replaced: int = 0
    same: int = 0
    older: int = 0

    @property
    def changed(self) -> int:
        return self.added + self.replaced

"""The row: one metric of one cell in tidy form, with its samples and their provenance; and which rows of several
attempts at a cell are stored.

A test freezes the columns. A change of a column's name or meaning raises ``SCHEMA``, and stores of older schemas stay
readable. No value is rounded here, and no ratio is stored: the report computes ratios.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

SCHEMA = 5
KEYED = 5  # the first schema whose digests are keys of versions; before, they were of the source

PROTOCOL = 1
"""The version of the protocol by which connections are compared; every row has that under which it was measured.

It is raised by a change after which new numbers cannot be compared with published ones, although the cells are named
alike and no task has a new version: another rule of success, another rule by which learning rates are tried and chosen,
other seeds of the finals, other sizes, steps or data of a part of ``decide``. Compared rows are of one protocol.

A new connection, family or metric does not raise it. Where only the numbers of one task, block, family or data set
change, its ``version`` is raised instead.
"""


class Status(StrEnum):
    """How a cell ended. Every cell has rows, whatever happened."""

    OK = "ok"
    DIVERGED = "diverged"  # a loss that is not finite: a result
    STALLED = "stalled"  # trained to its last step without reaching the threshold: a result
    SKIPPED = "skipped"  # meaningless, or cannot run on this machine; the message says why
    OOM = "oom"
    TIMEOUT = "timeout"
    CRASHED = "crashed"  # the worker process died
    FAILED = "failed"  # an exception


OUTCOMES = frozenset({Status.OK, Status.DIVERGED, Status.STALLED})
FAILURES = frozenset({Status.OOM, Status.TIMEOUT, Status.CRASHED, Status.FAILED})

RANK = (*sorted(FAILURES), Status.DIVERGED, Status.STALLED, Status.OK, Status.SKIPPED)


def worst(statuses: Iterable[str]) -> Status:
    """The status of a cell: the first in ``RANK`` of its rows' ``statuses``: failures, then outcomes, then a skip."""
    return min(map(Status, statuses), key=RANK.index)


DESCRIBED = ("blocks", "families", "datasets", "tasks")  # what a run's record describes by name, for its report

# Column → (SQLite type, meaning). Options, recipe and samples are JSON text.
COLUMNS: Mapping[str, tuple[str, str]] = {
    "schema": ("INTEGER", "version of these columns"),
    "protocol": ("INTEGER", "version of the protocol of comparisons, see PROTOCOL; null before schema 4"),
    "run_id": ("TEXT", "the run that measured it"),
    "time_utc": ("TEXT", "when, ISO 8601"),
    "commit": ("TEXT", "commit of the package's source, '+dirty' where it had changes, null outside git"),
    "machine": ("TEXT", "hardware identity: GPU model, or CPU model and cores"),
    "gpu": ("TEXT", "GPU model, null on a CPU"),
    "device": ("TEXT", "cpu or cuda"),
    "torch": ("TEXT", "torch version"),
    "threads": ("INTEGER", "intra-op threads"),
    "task": ("TEXT", "throughput, memory, trainability, …"),
    "task_version": ("TEXT", "changes when the measurement's meaning does"),
    "block": ("TEXT", ""),
    "block_options": ("TEXT", "JSON"),
    "family": ("TEXT", ""),
    "family_options": ("TEXT", "JSON"),
    "start": ("TEXT", "how the block begins: published or depth-aware; null where it has no part or options say it"),
    "match": ("TEXT", "what is held equal between blocks: width, params or flops"),
    "width": ("INTEGER", "features a layer"),
    "nominal_width": ("INTEGER", "plain's width in the comparison"),
    "depth": ("INTEGER", "layers joined by the block; a stem is not counted"),
    "batch_size": ("INTEGER", "items a step"),
    "seq_len": ("INTEGER", "steps of a sequence, null for other inputs"),
    "phase": ("TEXT", "forward, forward-backward or train-step"),
    "dtype": ("TEXT", ""),
    "mode": ("TEXT", "eager, compile or cudagraph"),
    "dataset": ("TEXT", "null where the input is the family's example"),
    "recipe": ("TEXT", "how it was trained, JSON"),
    "trial": ("INTEGER", "number within a search; null outside a search"),
    "seed": ("INTEGER", ""),
    "metric": ("TEXT", ""),
    "axis": ("TEXT", "what index counts: layer, step, …; empty for a scalar; or LATER_ATTEMPT"),
    "index": ("REAL", "position on the axis, 0 for a scalar"),
    "unit": ("TEXT", "s, B, 1, sample/s, FLOP/s, nat, …"),
    "better": ("TEXT", "lower, higher, or empty where neither is"),
    "status": ("TEXT", "see Status"),
    "message": ("TEXT", "reason of a status, or a remark"),
    "value": ("REAL", "median of the samples, or the one value; null where there is none"),
    "low": ("REAL", "10th percentile of the samples, or an interval's lower bound"),
    "high": ("REAL", "90th percentile of the samples, or an interval's upper bound"),
    "n": ("INTEGER", "number of samples, or of the values behind an estimate"),
    "samples": ("TEXT", "JSON list of all samples, in order; null where there is one value"),
    "paired": ("TEXT", "JSON lists by name: what was sampled in the same rounds as samples; else null"),
    "params": ("INTEGER", "parameters of the measured network"),
    "flops_per_item": ("REAL", "FLOP of the phase for one item, a multiply-add is two"),
    "digest": ("TEXT", "the cell's key: the cell, the versions of what it runs, torch's, and a meter's machine"),
    "source": ("TEXT", "hash of the source that it ran; null before schema 5"),
    "old_digest": ("TEXT", "its key before schema 5, which was of the source itself; else null"),
}
REALS = tuple(name for name, (kind, _) in COLUMNS.items() if kind == "REAL")
JSON_KINDS: Mapping[str, str] = {
    "block_options": "object",
    "family_options": "object",
    "recipe": "object",
    "samples": "array",
    "paired": "object",
}
UNIQUE = ("digest", "metric", "axis", "index")
OWN = (
    *("metric", "axis", "index", "unit", "better", "status", "message"),
    *("value", "low", "high", "n", "samples", "paired", "params", "flops_per_item"),
)
"""Columns that may differ between the rows of one attempt at a cell. All others are equal in them."""

LATER_ATTEMPT = "later attempt"
"""Axis of the one row with the status and message of a later attempt that measured less. The cell's other rows are its
last result, or a part of one: a failure never replaces either."""

Row = dict[str, Any]


def row(**values: Any) -> Row:
    """A row with every column, ``None`` where nothing is given; raises ``KeyError`` for an unknown column."""
    unknown = values.keys() - COLUMNS.keys()
    if unknown:
        raise KeyError(f"not columns of a row: {sorted(unknown)}")
    return dict.fromkeys(COLUMNS) | {"schema": SCHEMA, "protocol": PROTOCOL, "axis": "", "index": 0.0} | values


UNMEASURED = ("value", "low", "high", "n", "samples", "paired", "params", "flops_per_item")

Attempt = list[Row]


def stored(attempts: Sequence[Attempt]) -> list[Row]:
    """The rows to store of ``attempts`` at one cell, which are given oldest first.

    A failure never replaces a result. A whole result counts more than a part of one (some of its metrics failed), and a
    part more than no value. So these are the rows of the attempt that measured most, the last of several such. If later
    attempts measured less, one row on the axis ``LATER_ATTEMPT`` follows for the last of them.
    """
    best = max(range(len(attempts)), key=lambda index: (_measured(attempts[index]), index))
    later = [_status_row(rows) for rows in attempts[best + 1 :][-1:]]
    return attempts[best] + [one | {"axis": LATER_ATTEMPT, "index": 0.0} | dict.fromkeys(UNMEASURED) for one in later]


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


def _status_row(rows: Attempt) -> Row:
    """The row whose status is the attempt's."""
    status = worst(row["status"] for row in rows)
    return next(row for row in rows if row["status"] == status)

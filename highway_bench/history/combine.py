"""One point from two files of it: each benchmark as it was measured last, and no value of the other file lost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from highway_bench.errors import BadInput
from highway_bench.history.files import Result, Row, by_place
from highway_bench.history.validate import is_by_place


def combined(first: Result, second: Result, *, newest: bool = True, over_failures: bool = False) -> Result:
    """``first`` with the rows of ``second`` that it lacks, and with those measured later if the ``newest`` count.

    Where the row that counts has no value and the other has one, that is kept: a quick run leaves places empty that a
    full one filled. A failure counts as a value, for it is a finding, unless the other goes ``over_failures``. Gives
    ``first`` itself where that changes nothing.
    """
    if first.commit != second.commit:
        raise BadInput(f"{second.path} is of another commit than {first.path}: {second.commit}, not {first.commit}")
    if first.data == second.data:  # as nearly all are, of a history that was merged before
        return first
    rows = {}
    for name in first.rows | second.rows:
        mine, other = first.rows.get(name), second.rows.get(name)
        if mine is None or other is None:
            rows[name] = mine or other or {}
        elif newest and (other.get("started_at") or 0) > (mine.get("started_at") or 0):
            rows[name] = _filled(other, mine, over_failures)
        else:
            rows[name] = _filled(mine, other, over_failures)
    if rows == first.rows:
        return first
    columns = list(dict.fromkeys(first.data["result_columns"] + second.data["result_columns"]))
    data = first.data | {
        "result_columns": columns,
        "results": {name: [row.get(column) for column in columns] for name, row in rows.items()},
        "durations": (second.data.get("durations") or {}) | (first.data.get("durations") or {}),
    }
    return Result(first.path, first.commit, data)


def _filled(row: Row, other: Row, over_failures: bool) -> Row:
    """``row`` with the values of ``other`` in its empty places. Another version of a benchmark measured something
    else, and fills none."""
    axes, others = row.get("params") or [], other.get("params") or []
    if row.get("version") != other.get("version") or len(axes) != len(others):
        return row
    columns = ["result", *(column for column in row | other if is_by_place(column) and column != "result")]
    mine, theirs = by_place(row, columns), by_place(other, columns)
    taken = {
        place: cell for place, cell in theirs.items() if _has_value(cell) and _is_empty(mine.get(place), over_failures)
    }
    if not taken:
        return row
    grown = [list(dict.fromkeys(axis + more)) for axis, more in zip(axes, others, strict=True)]
    empty: Row = dict.fromkeys(columns) | {"result": math.nan}
    cells = [taken.get(place) or mine.get(place) or empty for place in itertools.product(*grown)]
    return row | {"params": grown} | {column: [cell[column] for cell in cells] for column in columns}


def _has_value(cell: Mapping[str, object]) -> bool:
    value = cell["result"]
    return isinstance(value, int | float) and math.isfinite(value)


def _is_empty(cell: Mapping[str, object] | None, over_failures: bool) -> bool:
    if cell is None or (cell["result"] is None and over_failures):
        return True
    return cell["result"] is not None and not _has_value(cell)

"""Combine two result files of one commit: the newest row of each benchmark counts, and no value is lost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from highway_bench.errors import BadInput
from highway_bench.history.files import BenchmarkRow, Result, by_parameters
from highway_bench.history.validate import is_per_parameter


def combined(first: Result, second: Result, *, newest: bool = True, over_failures: bool = False) -> Result:
    """``first`` with the rows of ``second`` that it lacks, and with those measured later if ``newest``.

    A missing value of the chosen row is filled from the other row, since a quick run leaves out values that a full run
    has. A failure is a result, and is filled only with ``over_failures``. Returns ``first`` itself if nothing changes.
    Raises ``BadInput`` for results of two commits.
    """
    if first.commit != second.commit:
        raise BadInput(f"{second.path} is of another commit than {first.path}: {second.commit}, not {first.commit}")
    if first.data == second.data:  # the usual case, after a first merge
        return first
    rows = {}
    for name in first.rows | second.rows:
        own, other = first.rows.get(name), second.rows.get(name)
        if own is None or other is None:
            rows[name] = own or other or {}
        elif newest and (other.get("started_at") or 0) > (own.get("started_at") or 0):
            rows[name] = _filled(other, own, over_failures)
        else:
            rows[name] = _filled(own, other, over_failures)
    if rows == first.rows:
        return first
    columns = list(dict.fromkeys(first.data["result_columns"] + second.data["result_columns"]))
    data = first.data | {
        "result_columns": columns,
        "results": {name: [row.get(column) for column in columns] for name, row in rows.items()},
        "durations": (second.data.get("durations") or {}) | (first.data.get("durations") or {}),
    }
    return Result(first.path, first.commit, data)


def _filled(row: BenchmarkRow, other: BenchmarkRow, over_failures: bool) -> BenchmarkRow:
    """``row`` with its missing values filled from ``other``, if both are of one version of the benchmark."""
    axes, others = row.get("params") or [], other.get("params") or []
    if row.get("version") != other.get("version") or len(axes) != len(others):
        return row
    columns = ["result", *(column for column in row | other if is_per_parameter(column) and column != "result")]
    mine, theirs = by_parameters(row, columns), by_parameters(other, columns)
    taken = {
        parameters: value
        for parameters, value in theirs.items()
        if _has_value(value) and _is_empty(mine.get(parameters), over_failures)
    }
    if not taken:
        return row
    grown = [list(dict.fromkeys(axis + more)) for axis, more in zip(axes, others, strict=True)]
    empty: BenchmarkRow = dict.fromkeys(columns) | {"result": math.nan}
    values = [taken.get(parameters) or mine.get(parameters) or empty for parameters in itertools.product(*grown)]
    return row | {"params": grown} | {column: [value[column] for value in values] for column in columns}


def _has_value(values: Mapping[str, object]) -> bool:
    value = values["result"]
    return isinstance(value, int | float) and math.isfinite(value)


def _is_empty(values: Mapping[str, object] | None, over_failures: bool) -> bool:
    if values is None or (values["result"] is None and over_failures):
        return True
    return values["result"] is not None and not _has_value(values)

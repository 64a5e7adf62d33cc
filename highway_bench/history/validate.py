"""The structure of asv's result files: required fields and their types."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator
from typing import Any

FIELDS = {"commit_hash": str, "env_name": str, "date": int, "params": dict, "result_columns": list, "results": dict}


def faults(data: dict[str, Any]) -> Iterator[str]:
    """Fields of a result file that are missing or have another type than asv's.

    Only the first is reliable: later checks assume that the earlier ones passed.
    """
    for name, kind in FIELDS.items():
        if not isinstance(data.get(name), kind):
            yield f"its {name} is {reprlib.repr(data[name])}" if name in data else f"it lacks {name}"
    if not isinstance(data["params"].get("machine"), str):
        yield "its params name no machine"
    if not _is_list(data["result_columns"], str):
        yield f"its result_columns are {reprlib.repr(data['result_columns'])}"
    for name, row in data["results"].items():
        if not isinstance(row, list):
            yield f"its row {name} is {reprlib.repr(row)}"
        for fault in _faults_of_row(dict(zip(data["result_columns"], row, strict=False))):
            yield f"its row {name} has {fault}"


def is_per_parameter(column: str) -> bool:
    """Whether a column has a value for each combination of a benchmark's parameters, rather than one for all."""
    return column in ("result", "samples") or column.startswith("stats_")


def _faults_of_row(row: dict[str, Any]) -> Iterator[str]:
    axes = row.get("params") or []
    if not (_is_list(axes, list) and all(_is_list(axis, str) for axis in axes)):
        yield f"the params {reprlib.repr(axes)}"
    if not isinstance(row.get("started_at"), int | None):
        yield f"the started_at {reprlib.repr(row['started_at'])}"
    combinations = math.prod(len(axis) for axis in axes)
    for column in filter(is_per_parameter, row):
        values, kinds = row[column], (list,) if column == "samples" else (int, float)
        if values is not None and not (_is_list(values, *kinds, type(None)) and len(values) == combinations):
            yield f"the {column} {reprlib.repr(values)} for {combinations} combinations of parameters"


def _is_list(value: object, *kinds: type) -> bool:
    return isinstance(value, list) and all(isinstance(one, kinds) for one in value)

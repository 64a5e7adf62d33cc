"""What a run's cells are, coordinate by coordinate, so that a later run can say what is new and what is not asked for.

It is stored with the run, before its first row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from highway_bench.cell import Cell

FIELDS: Final = (
    "task",
    "block",
    "family",
    "dataset",
    "depth",
    "nominal_width",
    "match",
    "start",
    "batch_size",
    "seq_len",
    "phase",
    "dtype",
    "device",
    "mode",
    "threads",
    "seed",
)
NAMES: Final = {"nominal_width": "width", "batch_size": "batch size", "seq_len": "length", "dataset": "data set"}
SHARED: Final = ("task", "block", "family")  # a run that has nothing of these in common with the last is another one
MOST: Final = 6  # values of a coordinate that are named

Requested = Mapping[str, list[str]]
"""The values of each coordinate, as text, in the order of the cells."""


def requested(cells: Iterable[Cell]) -> Requested:
    """The values of ``cells`` by coordinate, options and words of recipes too; trials of searches do not count."""
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.trial is None:
            for name, value in _coordinates(cell).items():
                if value is not None:
                    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    values.setdefault(name, {}).setdefault(text)
    return {name: list(several) for name, several in values.items()}


def changes(before: Requested, now: Requested) -> list[str]:
    """Two lines at most: what is new since ``before``, and what is no longer asked for. None for other runs."""
    if not all(set(before.get(name, ())) & set(now.get(name, ())) for name in SHARED):
        return []
    new, gone = _only_in(now, before), _only_in(before, now)
    lines = [f"new since the last run: {new}"] if new else []
    return lines + ([f"no longer asked for, and kept in the store: {gone}"] if gone else [])


def _coordinates(cell: Cell) -> dict[str, Any]:
    given = {name: value for name, value in cell.recipe.items() if name != "ladder"}  # it repeats depths and seeds
    return {NAMES.get(name, name): getattr(cell, name) for name in FIELDS} | {
        **cell.block_options,
        **cell.family_options,
        **given,
    }


def _only_in(these: Requested, others: Requested) -> str:
    parts = []
    for name, values in these.items():
        if only := [value for value in values if value not in others.get(name, ())]:
            more = f" and {len(only) - MOST} more" if len(only) > MOST else ""
            parts.append(f"{name} {', '.join(only[:MOST])}{more}")
    return "; ".join(parts)

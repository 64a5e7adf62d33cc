"""The rows and runs of a store, a cache for tables that are derived from them, and the units of these tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import pandas as pd

from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import Runs, of_task, prepared

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound="Derived")

SIZES: Final = {
    "depth": "layer",
    "at_depth": "layer",
    "l_max": "layer",
    "shallowest": "layer",
    "l50": "layer",
    "layer": "layer",
    "steps": "step",
}
"""Units of columns that occur in several tables. Those of a single table are arguments of ``with_units``."""


def once(compute: Callable[Concatenate[D, P], T]) -> Callable[Concatenate[D, P], T]:
    """Decorator: cache a method's value at the first call and return a copy, so that no caller changes the cache."""

    def method(self: D, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (compute.__name__, *args, *kwargs.values())
        if key not in self._values:
            self._values[key] = compute(self, *args, **kwargs)
        value: Any = self._values[key]
        # pandas copies the columns of a shallow copy when they are written.
        copied: Any = value.copy(deep=False) if isinstance(value, pd.DataFrame) else deepcopy(value)
        return copied  # type: ignore[no-any-return]

    update_wrapper(method, compute)
    return method


@dataclass(frozen=True, eq=False)
class Derived:
    """The newest rows of each cell of a store, as ``rows.prepared`` returns them, and the store's runs.

    ``about`` has the runs' descriptions of blocks, families, tasks and metrics.
    """

    rows: pd.DataFrame
    runs: Runs = field(default_factory=dict)
    about: Descriptions = field(init=False, repr=False)
    _values: dict[Hashable, Any] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", prepared(self.rows, self.runs))
        object.__setattr__(self, "about", Descriptions(self.runs))

    @once
    def of_task(self, task: str) -> pd.DataFrame:
        """The prepared rows of one task."""
        return of_task(self.rows, task)

    def with_units(self, table: pd.DataFrame, task: str, **own: str) -> pd.DataFrame:
        """Set ``table.attrs["units"]``, the unit of every column of numbers by name, and return ``table``.

        The unit is that in ``own``, of the metric of ``task`` with that name, or in ``SIZES``. A column ``…_low`` or
        ``…_high`` has the unit of the column that it bounds. Any other column has the unit ``1``.
        """
        metrics = {**self._metric_units(task), **own}
        units: dict[str, str] = {}
        for name in map(str, table.columns):
            if pd.api.types.is_bool_dtype(table[name]) or not pd.api.types.is_numeric_dtype(table[name]):
                continue
            base = name.removesuffix("_low").removesuffix("_high")
            units[name] = next((known[key] for key in (name, base) for known in (metrics, SIZES) if key in known), "1")
        table.attrs["units"] = units
        return table

    @once
    def _metric_units(self, task: str) -> Mapping[str, str]:
        """The unit of every metric of ``task``, from its rows or else from the runs' descriptions."""
        described = self.about.tasks.get(task, {}).get("metrics") or {}
        stored = self.of_task(task)[["metric", "unit"]].dropna().drop_duplicates("metric")
        return {name: entry["unit"] for name, entry in described.items() if entry.get("unit")} | dict(stored.to_numpy())

"""Tables for print: every number as text with its unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from highway_bench.frames.rows import rows_of
from highway_bench.report.format import NONE, count, quantity, three
from highway_bench.report.ratio import meanings, quoted
from highway_bench.terminal import Heading as Heading
from highway_bench.terminal import TextTable as TextTable

Record = Mapping[str, Any]


Column = tuple[Heading, Callable[[Record], str]]


def shown(
    name: str, title: str, table: pd.DataFrame, columns: Iterable[Column], *, note: str = "", most: int | None = None
) -> TextTable:
    """Format ``table`` with ``columns``. Empty columns are omitted, and so are rows beyond the first ``most``."""
    records = rows_of(table)
    printed = records if most is None else records[:most]
    filled = [(head, [make(record) for record in printed]) for head, make in columns]
    filled = [(head, entries) for head, entries in filled if any(entry not in ("", NONE) for entry in entries)]
    rows = tuple(zip(*(entries for _, entries in filled), strict=True)) if filled else ()
    notes = [note, *meanings(entry for head, entries in filled if head.ratio for entry in entries)]
    left_out = len(records) - len(printed)
    return TextTable(name, title, tuple(head for head, _ in filled), rows, " ".join(filter(None, notes)), left_out)


def words(column: str, heading: str, hint: str = "") -> Column:
    """A column of text."""
    return Heading(heading, hint, number=False), lambda record: _text(record.get(column))


def number(column: str, heading: str, unit: str = "1", hint: str = "") -> Column:
    """A column of quantities in a unit."""
    return Heading(heading, hint), lambda record: _number(record.get(column), lambda value: quantity(value, unit))


def whole(column: str, heading: str, hint: str = "") -> Column:
    """A column of exact counts."""
    return Heading(heading, hint), lambda record: _number(record.get(column), count)


def ratio(column: str, heading: str, hint: str = "", *, text: Callable[[float], str] = three) -> Column:
    """A column of measured ratios, in the notation of ``ratio.quoted``.

    ``column`` has the value, ``ratio_low`` and ``ratio_high`` the bounds, and ``ratio_gap`` the reason for a missing
    interval. ``text`` prints a number.
    """

    def make(record: Record) -> str:
        value, low, high = (
            math.nan if missing(record[name]) else float(record[name]) for name in (column, "ratio_low", "ratio_high")
        )
        return quoted(value, low, high, record["ratio_gap"] or "", text=text)

    return Heading(heading, hint, ratio=True), make


def spread(column: str, heading: str, low: str, high: str, unit: str, hint: str = "") -> Column:
    """A column of quantities, each with the interval from ``low`` to ``high``, all in ``unit``."""

    def make(record: Record) -> str:
        interval = ""
        if not (missing(record.get(low)) or missing(record.get(high))):
            interval = f" [{quantity(record[low], unit)}, {quantity(record[high], unit)}]"
        return _number(record.get(column), lambda value: quantity(value, unit) + interval)

    return Heading(heading, hint), make


def computed(heading: str, make: Callable[[Record], str], hint: str = "", *, is_number: bool = True) -> Column:
    """A column whose entries ``make`` computes from a whole row."""
    return Heading(heading, hint, is_number), make


def missing(value: object) -> bool:
    """Whether ``value`` is null or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NA


def percent(column: str, heading: str, hint: str = "") -> Column:
    """A column of shares as percentages."""
    return Heading(heading, hint), lambda record: _number(record.get(column), lambda value: f"{three(100 * value)} %")


def _number(value: Any, text: Callable[[float], str]) -> str:
    return NONE if missing(value) else text(float(value))


def _text(value: object) -> str:
    if missing(value):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)

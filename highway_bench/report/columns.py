"""Tables as they are read: every number as text with its unit, and the number that it is sorted by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from highway_bench.report.format import NONE, count, quantity, three
from highway_bench.report.ratio import meanings, quoted
from highway_bench.report.rows import rows_of

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Head:
    """A column's heading; ``hint`` explains it. ``ratio`` is for measured ratios, whose words the note explains."""

    text: str
    hint: str = ""
    number: bool = True
    ratio: bool = False


@dataclass(frozen=True)
class Entry:
    """A table's cell: its text, and the key that it is sorted by."""

    text: str
    key: float | str = ""


@dataclass(frozen=True)
class Shown:
    """A table to print: ``left_out`` rows were too many to show."""

    name: str
    title: str
    heads: tuple[Head, ...]
    entries: tuple[tuple[Entry, ...], ...]
    note: str = ""
    left_out: int = 0


Column = tuple[Head, Callable[[Record], Entry]]


def shown(
    name: str, title: str, table: pd.DataFrame, columns: Iterable[Column], *, note: str = "", most: int | None = None
) -> Shown:
    """``table`` under ``columns``; columns that are empty in every row are left out, and rows beyond ``most``."""
    records = rows_of(table)
    printed = records if most is None else records[:most]
    filled = [(head, [make(record) for record in printed]) for head, make in columns]
    filled = [(head, entries) for head, entries in filled if any(entry.text not in ("", NONE) for entry in entries)]
    rows = tuple(zip(*(entries for _, entries in filled), strict=True)) if filled else ()
    notes = [note, *meanings(entry.text for head, entries in filled if head.ratio for entry in entries)]
    left_out = len(records) - len(printed)
    return Shown(name, title, tuple(head for head, _ in filled), rows, " ".join(filter(None, notes)), left_out)


def words(column: str, heading: str, hint: str = "") -> Column:
    """A column of text."""
    return Head(heading, hint, number=False), lambda record: _text(record.get(column))


def number(column: str, heading: str, unit: str = "1", hint: str = "") -> Column:
    """A column of quantities in a unit."""
    return Head(heading, hint), lambda record: _number(record.get(column), lambda value: quantity(value, unit))


def whole(column: str, heading: str, hint: str = "") -> Column:
    """A column of exact counts."""
    return Head(heading, hint), lambda record: _number(record.get(column), count)


def ratio(column: str, heading: str, hint: str = "") -> Column:
    """A column of measured ratios, quoted by the one rule (see ``ratio.py``): the value in ``column``, the interval in
    ``ratio_low`` and ``ratio_high``, and in ``ratio_gap`` why there is none."""

    def make(record: Record) -> Entry:
        value, low, high = (
            math.nan if missing(record[name]) else float(record[name]) for name in (column, "ratio_low", "ratio_high")
        )
        return Entry(quoted(value, low, high, record["ratio_gap"] or ""), LAST if math.isnan(value) else value)

    return Head(heading, hint, ratio=True), make


def exact_ratio(column: str, heading: str, hint: str) -> Column:
    """A column of ratios of exact counts, which have no interval."""
    return number(column, heading, hint=f"{hint}: counted exactly")


def spread(column: str, heading: str, low: str, high: str, unit: str, hint: str = "") -> Column:
    """A column of quantities with an interval, in one unit."""

    def make(record: Record) -> Entry:
        interval = ""
        if not (missing(record.get(low)) or missing(record.get(high))):
            interval = f" [{quantity(record[low], unit)}, {quantity(record[high], unit)}]"
        return _number(record.get(column), lambda value: quantity(value, unit) + interval)

    return Head(heading, hint), make


def reached(heading: str, column: str, unit: str, hint: str = "") -> Column:
    """A column of medians over seeds with misses infinite: "not reached" where half or more missed."""

    def make(record: Record) -> Entry:
        value = record[column]
        if missing(value):
            return Entry(NONE, LAST)
        return Entry("not reached" if math.isinf(value) else quantity(value, unit), float(value))

    return Head(heading, hint), make


def made(heading: str, make: Callable[[Record], Entry], hint: str = "", *, is_number: bool = True) -> Column:
    """A column whose entries are computed from several columns."""
    return Head(heading, hint, is_number), make


def missing(value: object) -> bool:
    """Whether there is no number."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NA


def percent(column: str, heading: str, hint: str = "") -> Column:
    """A column of shares as percentages."""
    return Head(heading, hint), lambda record: _number(record.get(column), lambda value: f"{three(100 * value)} %")


def percents(column: str, heading: str, low: str, high: str, hint: str = "") -> Column:
    """A column of shares as percentages, with an interval."""

    def make(record: Record) -> Entry:
        bounds = [record[bound] for bound in (low, high) if not missing(record.get(bound))]
        interval = f" [{', '.join(f'{three(100 * bound)} %' for bound in bounds)}]" if bounds else ""
        return _number(record.get(column), lambda value: f"{three(100 * value)} %{interval}")

    return Head(heading, hint), make


LAST: Final = math.inf


def _number(value: Any, text: Callable[[float], str]) -> Entry:
    return Entry(NONE, LAST) if missing(value) else Entry(text(float(value)), float(value))


def _text(value: object) -> Entry:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return Entry("")
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return Entry(text, text)

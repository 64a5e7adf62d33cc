"""Tables for print, and as Markdown: every number as text with its unit, and the notation of measured ratios.

A ratio is printed with its 95 % interval, as ``undecided`` with the interval, or as the reason for neither. It is
decided if max(high / value, value / low) ≤ 1 + ``NEAR``: by factors, so that a ratio and its inverse are decided alike.
Ratios of exact counts (bytes, parameters, FLOP) have no interval and are plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from highway_bench.frames.cells import OLDER, ONE_PROCESS
from highway_bench.frames.rows import rows_of
from highway_bench.measure.clock import ALL_CAPPED, ALL_DISTURBED
from highway_bench.report.format import NONE, between, count, quantity, three
from highway_bench.terminal import Heading as Heading
from highway_bench.terminal import TextTable as TextTable

NEAR: Final = 0.10
"""The largest relative distance between a decided ratio and a bound of its interval."""

PERCENT: Final = f"{100 * NEAR:g} %"

NOT_TIMED: Final = "not timed"

MEANINGS: Final = {
    "undecided [": f"“undecided”: the 95 % interval reaches more than {PERCENT} from the value. More processes "
    "(--recipe limit=60) or an idle machine make it narrower.",
    ALL_DISTURBED: "“every round was disturbed”: with several threads, or on a GPU, the machine's other work reaches "
    "every step, so the times tell about that work too. Time the cell on an idle machine.",
    ALL_CAPPED: "“the GPU's clock was capped”: heat or power lowered it in every round, so the times tell about the "
    "cooling too, and a step that takes more power loses more. The remark has the cause. Let the GPU cool down.",
    ONE_PROCESS: f"“{ONE_PROCESS}”: the interval of a ratio covers processes, and this cell was timed in one. Allow "
    "more: --recipe processes=3.",
    OLDER: f"“{OLDER}”: an older version timed this cell, without plain in the same rounds. Time it again: "
    "highway-bench run throughput.",
    NOT_TIMED: f"“{NOT_TIMED}”: no step was timed at this depth in turn with plain's, and the steps of training runs "
    "give no paired ratio. Time them: highway-bench run throughput.",
}
"""The meaning of the words in a quoted ratio, and the remedy. The first key in the text applies."""

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
    """A column of measured ratios, in the notation of ``quoted``.

    ``column`` has the value, ``…_low`` and ``…_high`` the bounds, and ``…_gap``, if the table has it, the reason for a
    missing interval. ``text`` prints a number.
    """

    def make(record: Record) -> str:
        value, low, high = (
            math.nan if missing(record[name]) else float(record[name])
            for name in (column, f"{column}_low", f"{column}_high")
        )
        reason = record.get(f"{column}_gap", "" if math.isnan(value) else ONE_PROCESS)
        return quoted(value, low, high, reason or "", text=text)

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


def is_decided(value: float, low: float, high: float) -> bool:
    """Whether max(high / value, value / low) ≤ 1 + ``NEAR``; false if a bound is missing."""
    return max(high / value, value / low) <= 1 + NEAR if low > 0 and value > 0 else False


def quoted(value: float, low: float, high: float, reason: str = "", *, text: Callable[[float], str] = three) -> str:
    """A ratio as text: ``1.54 [1.50, 1.58]``, or ``undecided [0.900, 1.60]``.

    Without an interval the text is the ``reason``, or a dash. The ratio of plain to itself, exactly 1, is ``1``.
    ``text`` prints a number.
    """
    interval = between(low, high, text)
    if not interval:
        return reason or NONE
    if value == 1:
        return "1"
    return f"{text(value)} {interval}" if is_decided(value, low, high) else f"undecided {interval}"


def meanings(texts: Iterable[str]) -> list[str]:
    """The meanings of the words in these quoted ratios, each once."""
    begins = {next((word for word in MEANINGS if word in text), "") for text in texts}
    return [meaning for word, meaning in MEANINGS.items() if word in begins]


def shown_lines(shown: TextTable, explained: set[Heading] | None = None) -> list[str]:
    """A table for print, with the hints of its headings and its note.

    Headings that are in ``explained`` have their hint above already; the others are added to it."""
    lines = markdown_table([one.text for one in shown.heads], shown.entries)
    hints = " ".join(f"*{one.text}*: {one.hint}." for one in shown.heads if one.hint and one not in (explained or ()))
    if explained is not None:
        explained.update(shown.heads)
    return lines + [line for text in (hints, shown.note) if text for line in ("", text)]


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of these headings and rows."""

    def line(entries: Sequence[str]) -> str:
        return "| " + " | ".join(entry.replace("|", "\\|") for entry in entries) + " |"

    return [line(heads), line(["---"] * len(heads)), *map(line, rows)]

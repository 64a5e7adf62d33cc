"""Tables in Markdown, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from highway_bench.report.columns import Heading, TextTable


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

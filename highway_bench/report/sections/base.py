"""Sections of a report: the tables of one or several tasks. A task names its section, which registers by that name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, TypeVar

from highway_bench.registry import Registry
from highway_bench.report.columns import Column, Shown, percent, whole, words
from highway_bench.report.columns import number as number_column
from highway_bench.report.results import Results

MOST: Final = 150
"""The largest number of rows of a table on the page; a store may have tens of thousands."""


class ReportSection(ABC):
    """The tables of a task's results. Tasks without a section get tables of values by metric name.

    ``name`` is the ``section`` that the task declares. ``title`` is the title of its tables. ``absent`` is a sentence
    for stores without such rows; empty for none. ``order`` sorts the sections. ``metrics`` are the scalars with a
    column in ``tables``; other scalars go into a table of further values. A section with a ``heading`` is folded
    away under it, with a ``note``; the tables of all others are under "All results".
    """

    name: str
    title: str
    absent: str = ""
    order: int = 100
    metrics: tuple[str, ...] = ()
    heading: str = ""
    note: str = ""

    @abstractmethod
    def tables(self, results: Results) -> list[Shown]:
        """The tables of this section; the caller omits those without rows."""

    def summary(self, results: Results) -> list[Shown]:
        """Tables for the summary at the top of the page; none by default."""
        return []


sections: Registry[ReportSection] = Registry("section", package="highway_bench.report.sections")

S = TypeVar("S", bound=type[ReportSection])


def register_section(cls: S) -> S:
    """Class decorator: register an instance of a section under its ``name``."""
    sections.register(cls.name, cls(), module=cls.__module__)
    return cls


def every_section() -> list[ReportSection]:
    """All sections in the order of the page."""
    return sorted((sections.get(name) for name in sections), key=lambda section: section.order)


def section_of(results: Results, task: str) -> ReportSection | None:
    """The section of ``task``, or None."""
    name = results.about.section(task)
    return sections.get(name) if name in sections else None


def metric_column(results: Results, task: str, metric: str, unit: str = "1", hint: str = "") -> Column:
    """A column of a metric with the heading, hint and unit of the runs' descriptions; ``unit`` is the default.

    A ``hint`` is put before the described one."""
    label = results.about.metric(task, metric, unit)
    hints = ", ".join(filter(None, [hint, label.hint]))
    if label.percent:
        return percent(metric, label.heading, hints)
    return number_column(metric, label.heading, label.unit, hints)


def network_columns() -> list[Column]:
    """The first columns of most tables: family, depth and block."""
    return [words("family_label", "family"), whole("depth", "depth"), words("block", "block")]


def shape_columns(results: Results, task: str) -> list[Column]:
    """Columns for the size and setting of a cell of ``task``."""
    return [
        whole("width", "width"),
        whole("batch_size", "batch"),
        whole("seq_len", "length"),
        words("match", "equal"),
        words("dtype", "dtype"),
        words("device", "device"),
        whole("params", "parameters"),
        metric_column(results, task, "budget_mismatch"),
    ]


def status_columns() -> list[Column]:
    """Columns for the status of a cell and its remarks."""
    return [words("status", "status"), words("message", "remark")]

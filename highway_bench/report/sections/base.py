"""Section: what a report prints of one or several tasks. A task names its section; a section registers by that name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, TypeVar

from highway_bench.registry import Registry
from highway_bench.report.columns import Column, Shown, percent, whole, words
from highway_bench.report.columns import number as number_column
from highway_bench.report.results import Results

MOST: Final = 1_000
"""Rows of a table on the page at most; a store may have tens of thousands."""


class ReportSection(ABC):
    """Tables of a task's results. A new task's section is one file here; without one its values are listed by name.

    ``name`` is what the task declares as its ``section``. ``title`` heads its tables. ``absent`` says what is missing
    where the store has no such rows; empty, nothing is said. ``order`` sorts the sections. ``metrics`` are the scalars
    that have a column in ``tables``; others go into a table of further values. A section with a ``heading`` is folded
    away under it, with a ``note`` and a ``fold`` to click on; the others are listed with all results.
    """

    name: str
    title: str
    absent: str = ""
    order: int = 100
    metrics: tuple[str, ...] = ()
    heading: str = ""
    anchor: str = ""
    menu: str = ""
    note: str = ""
    fold: str = ""

    @abstractmethod
    def tables(self, results: Results) -> list[Shown]:
        """The tables of this section; those without rows are left out by the caller."""

    def summary(self, results: Results) -> list[Shown]:
        """Tables for the summary at the top of the page; most sections have none."""
        return []


sections: Registry[ReportSection] = Registry("section", package="highway_bench.report.sections")

S = TypeVar("S", bound=type[ReportSection])


def register_section(cls: S) -> S:
    """Class decorator: put one instance of a section into the registry, under its ``name``."""
    sections.register(cls.name, cls(), module=cls.__module__)
    return cls


def every_section() -> list[ReportSection]:
    """All sections in the order of the page."""
    return sorted((sections.get(name) for name in sections), key=lambda section: section.order)


def section_of(results: Results, task: str) -> ReportSection | None:
    """The section that shows ``task``, if there is one."""
    name = results.about.section(task)
    return sections.get(name) if name in sections else None


def metric_column(results: Results, task: str, metric: str, unit: str = "1") -> Column:
    """A column of a metric under the heading that the runs' descriptions give it."""
    label = results.about.metric(task, metric, unit)
    if label.percent:
        return percent(metric, label.heading, label.hint)
    return number_column(metric, label.heading, label.unit, label.hint)


def network_columns() -> list[Column]:
    """What tells the rows of most tables apart: family, depth and block."""
    return [words("family_label", "family"), whole("depth", "depth"), words("block", "block")]


def shape_columns() -> list[Column]:
    """The size and setting of a measured cell."""
    return [
        whole("width", "width"),
        whole("batch_size", "batch"),
        whole("seq_len", "length"),
        words("match", "equal"),
        words("dtype", "dtype"),
        words("device", "device"),
        whole("params", "parameters"),
        percent("budget_mismatch", "parameters off"),
    ]


def status_columns() -> list[Column]:
    """How a cell ended, and its remarks."""
    return [words("status", "status"), words("message", "remark")]

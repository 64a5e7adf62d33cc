"""Descriptions of a run's blocks, families, data sets and tasks. They are stored with the run, and the report reads
them instead of the registries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import Cell
from highway_bench.data import datasets
from highway_bench.families import families
from highway_bench.registry import Registry
from highway_bench.registry import described as summary_of
from highway_bench.results.schema import DESCRIBED
from highway_bench.tasks.base import tasks

TEXTS = ("equation", "transform", "source", "summary")
FACTS = ("baseline", "group", "evidence", "init_state", "kind", "order", "branch_of")
"""Attributes by which a report orders and compares blocks and families; an entry has those that its registry
declares."""
METRIC = ("unit", "better", "label", "hint", "percent")


def descriptions(cells: Iterable[Cell]) -> dict[str, dict[str, Any]]:
    """``{"blocks": {name: {"equation": …, "source": …, "summary": …}}, "families": …, "datasets": …, "tasks": …}``.

    Blocks and families also have the ``FACTS`` that their registry declares. Tasks have the ``section`` of the report
    that shows them and, for each metric, the attributes ``METRIC``. A family or data set that is no registry entry
    (``module:factory``) has an empty description.
    """
    cells = list(cells)
    described = (
        _entries(blocks, {cell.block for cell in cells}),
        _entries(families, {cell.family for cell in cells}),
        _entries(datasets, {cell.dataset for cell in cells if cell.dataset is not None}),
        {name: _task(name) for name in sorted({cell.task for cell in cells})},
    )
    return dict(zip(DESCRIBED, described, strict=True))


def _entries(registry: Registry[Any], names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    entries = {name: registry.get(name) if name in registry else None for name in sorted(names)}
    return {
        name: {text: str(getattr(entry, text)) for text in TEXTS if getattr(entry, text, None)}
        | _attributes(entry, FACTS)
        | _starts(entry)
        for name, entry in entries.items()
    }


def _starts(entry: object) -> dict[str, dict[str, str]]:
    """How a block may begin, by the start's name."""
    return {"starts": {one.name: one.about for one in entry.starts}} if isinstance(entry, BlockSpec) else {}


def _attributes(entry: object, names: Iterable[str]) -> dict[str, Any]:
    """The attributes ``names`` that ``entry`` has and that are not empty."""
    values = {name: getattr(entry, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None and value is not False and value != ""}


def _task(name: str) -> dict[str, Any]:
    task = tasks.get(name)
    metrics = {metric.name: {"better": metric.better} | _attributes(metric, METRIC) for metric in task.metrics}
    return {"summary": summary_of(type(task)), "version": task.version, "metrics": metrics} | _attributes(
        task, ("section",)
    )

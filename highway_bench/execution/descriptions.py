"""What a run's blocks, families, data sets and tasks are, in words: the report reads them here, not in registries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from highway_bench.cell import Cell
from highway_bench.registry import Registry, described
from highway_bench.tasks.base import tasks

TEXTS = ("equation", "transform", "source", "summary")
FACTS = ("yardstick", "core", "control", "kind", "order", "branch_of")
"""What a report orders and compares blocks and families by; an entry has those of them that its registry declares."""
METRIC = ("unit", "better", "label", "hint", "percent")


def descriptions(cells: Iterable[Cell]) -> dict[str, dict[str, Any]]:
    """``{"blocks": {name: {"equation": …, "source": …, "summary": …}}, "families": …, "datasets": …, "tasks": …}``.

    Blocks and families also have those of ``FACTS`` that their registry declares. Tasks have the ``section`` of the
    report that shows them and, for each metric, those of ``METRIC``. A family or data set that is no registry entry
    (``module:factory``) has an empty description.
    """
    from highway_bench.blocks import blocks
    from highway_bench.data import datasets
    from highway_bench.families import families

    cells = list(cells)
    return {
        "blocks": _said(blocks, {cell.block for cell in cells}),
        "families": _said(families, {cell.family for cell in cells}),
        "datasets": _said(datasets, {cell.dataset for cell in cells if cell.dataset is not None}),
        "tasks": {name: _task(name) for name in sorted({cell.task for cell in cells})},
    }


def _said(registry: Registry[Any], names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    entries = {name: registry.get(name) if name in registry else None for name in sorted(names)}
    return {
        name: {word: str(getattr(entry, word)) for word in TEXTS if getattr(entry, word, None)} | _given(entry, FACTS)
        for name, entry in entries.items()
    }


def _given(entry: object, words: Iterable[str]) -> dict[str, Any]:
    """The attributes ``words`` of ``entry`` that it has and that are not empty."""
    values = {word: getattr(entry, word, None) for word in words}
    return {word: value for word, value in values.items() if value is not None and value is not False and value != ""}


def _task(name: str) -> dict[str, Any]:
    task = tasks.get(name)
    metrics = {metric.name: {"better": metric.better} | _given(metric, METRIC) for metric in task.metrics}
    return {"summary": described(type(task)), "version": task.version, "metrics": metrics} | _given(task, ("section",))

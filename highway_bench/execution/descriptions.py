"""What a run's blocks, families, data sets and tasks are, in words: the report reads them here, not in registries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from highway_bench.cell import Cell
from highway_bench.registry import Registry, described
from highway_bench.tasks.base import tasks

SAID = ("equation", "transform", "source", "summary")


def descriptions(cells: Iterable[Cell]) -> dict[str, dict[str, Any]]:
    """``{"blocks": {name: {"equation": …, "source": …, "summary": …}}, "families": …, "datasets": …, "tasks": …}``.

    A family or data set that is no registry entry (``module:factory``) has an empty description.
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


def _said(registry: Registry[Any], names: Iterable[str]) -> dict[str, Mapping[str, str]]:
    entries = {name: registry.get(name) if name in registry else None for name in sorted(names)}
    return {
        name: {word: str(getattr(entry, word)) for word in SAID if getattr(entry, word, None)}
        for name, entry in entries.items()
    }


def _task(name: str) -> dict[str, Any]:
    task = tasks.get(name)
    return {
        "summary": described(type(task)),
        "version": task.version,
        "metrics": {metric.name: {"unit": metric.unit, "better": metric.better} for metric in task.metrics},
    }

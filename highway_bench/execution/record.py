"""Record: what is stored with a run, in addition to its rows.

Descriptions of its blocks, families, data sets and tasks, which the report reads instead of the registries. And what
its cells are, coordinate by coordinate, so that a later run can say what is new and what is not asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import Cell, canonical
from highway_bench.data import datasets, make_dataset
from highway_bench.errors import USER_ERRORS
from highway_bench.families import families
from highway_bench.registry import Registry
from highway_bench.registry import described as summary_of
from highway_bench.results.schema import DESCRIBED
from highway_bench.tasks.base import tasks
from highway_bench.tasks.from_cell import dataset_options

TEXTS = ("equation", "transform", "source", "summary")
FACTS = ("baseline", "group", "evidence", "init_state", "kind", "order", "branch_of")
"""Attributes by which a report orders and compares blocks and families; an entry has those that its registry
declares."""
METRIC = ("unit", "better", "label", "hint", "percent")
FIELDS: Final = (
    "task",
    "block",
    "family",
    "dataset",
    "depth",
    "nominal_width",
    "match",
    "start",
    "batch_size",
    "seq_len",
    "phase",
    "dtype",
    "device",
    "mode",
    "threads",
    "seed",
)
NAMES: Final = {"nominal_width": "width", "batch_size": "batch size", "seq_len": "length", "dataset": "data set"}
SHARED: Final = ("task", "block", "family")  # a run that has nothing of these in common with the last is another one
MOST: Final = 6  # values of a coordinate that are named

Requested = Mapping[str, list[str]]
"""The values of each coordinate, as text, in the order of the cells."""


def descriptions(cells: Iterable[Cell]) -> dict[str, dict[str, Any]]:
    """``{"blocks": {name: {"equation": …, "source": …, "summary": …}}, "families": …, "datasets": …, "tasks": …}``.

    Blocks and families also have the ``FACTS`` that their registry declares, data sets their ``chance_loss``. Tasks
    have, for each metric, the attributes ``METRIC``. A family or data set that is no registry entry
    (``module:factory``) has an empty description.
    """
    cells = list(cells)
    described = (
        _entries(blocks, {cell.block for cell in cells}),
        _entries(families, {cell.family for cell in cells}),
        _datasets(cells),
        {name: _task(name) for name in sorted({cell.task for cell in cells})},
    )
    return dict(zip(DESCRIBED, described, strict=True))


def _datasets(cells: list[Cell]) -> dict[str, Mapping[str, Any]]:
    """Data sets with the loss of the best constant prediction, if it is known and the same for all cells."""
    options: dict[str, dict[str, Mapping[str, Any]]] = {}
    for cell in cells:
        if cell.dataset is not None:
            given = dataset_options(cell)
            options.setdefault(cell.dataset, {})[canonical(given)] = given
    entries = _entries(datasets, options)
    for name in entries:
        losses = {_chance(name, given) for given in options[name].values()}
        if len(losses) == 1 and (loss := losses.pop()) is not None:
            entries[name] = {**entries[name], "chance_loss": loss}
    return entries


def _chance(name: str, options: Mapping[str, Any]) -> float | None:
    """The loss of the best constant prediction; None if the data are missing or cannot be read."""
    try:
        data = make_dataset(name, **options)
        return None if data.missing() else float(data.chance_loss)
    except USER_ERRORS:  # of a plug-in's data set; a cell that needs it reports the error
        return None


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
    return {"summary": summary_of(type(task)), "version": task.version, "metrics": metrics}


def requested(cells: Iterable[Cell]) -> Requested:
    """The values of ``cells`` by coordinate, options and words of recipes too; trials of searches do not count."""
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.trial is None:
            for name, value in _coordinates(cell).items():
                if value is not None:
                    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    values.setdefault(name, {}).setdefault(text)
    return {name: list(several) for name, several in values.items()}


def changes(before: Requested, now: Requested) -> list[str]:
    """Two lines at most: what is new since ``before``, and what is no longer asked for. None for other runs."""
    if not all(set(before.get(name, ())) & set(now.get(name, ())) for name in SHARED):
        return []
    new, gone = _only_in(now, before), _only_in(before, now)
    lines = [f"new since the last run: {new}"] if new else []
    return lines + ([f"no longer asked for, and kept in the store: {gone}"] if gone else [])


def _coordinates(cell: Cell) -> dict[str, Any]:
    given = {name: value for name, value in cell.recipe.items() if name != "ladder"}  # it repeats depths and seeds
    return {NAMES.get(name, name): getattr(cell, name) for name in FIELDS} | {
        **cell.block_options,
        **cell.family_options,
        **given,
    }


def _only_in(these: Requested, others: Requested) -> str:
    parts = []
    for name, values in these.items():
        if only := [value for value in values if value not in others.get(name, ())]:
            more = f" and {len(only) - MOST} more" if len(only) > MOST else ""
            parts.append(f"{name} {', '.join(only[:MOST])}{more}")
    return "; ".join(parts)

"""Record: what is stored of a run: the results of its cells as rows, and what else belongs to it.

That is descriptions of its blocks, families, data sets and tasks, which the report reads instead of the registries. And
what its cells are, coordinate by coordinate, so that a later run can say what is new and what is not asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import Cell, canonical
from highway_bench.data import datasets, make_dataset
from highway_bench.errors import USER_ERRORS
from highway_bench.execution.job import CellResult
from highway_bench.families import families
from highway_bench.provenance import identity
from highway_bench.registry import Registry
from highway_bench.registry import described as summary_of
from highway_bench.results.schema import DESCRIBED, Row, row
from highway_bench.tasks.base import Task, tasks
from highway_bench.tasks.from_cell import dataset_options
from highway_bench.tasks.measurement import Measurement

TEXTS = ("equation", "transform", "source", "summary")
FACTS = ("baseline", "group", "evidence", "init_state", "kind", "order")
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


@dataclass(frozen=True)
class Origin:
    """What all rows of a run have in common."""

    run_id: str
    commit: str | None


class RunClock:
    """The times of a run, which sort after ``last``, the newest one in the store, and never go back.

    A report shows the rows of the newest time. After an edit, with the system's clock set back meanwhile, these would
    be rows of the older source.
    """

    def __init__(self, last: str | None) -> None:
        self._last: datetime | None = None
        with suppress(ValueError, OverflowError):  # text that no run wrote
            stored = datetime.fromisoformat(last) if last else None
            if stored is not None:
                self._last = stored.replace(tzinfo=stored.tzinfo or UTC).astimezone(UTC)

    def now(self) -> str:
        """The current time, or a microsecond after the last one where the system's clock is not later than that."""
        current = datetime.now(UTC)
        if self._last is not None and current <= self._last:
            with suppress(OverflowError):  # the last moment of the year 9999
                current = self._last + timedelta(microseconds=1)
        self._last = current
        return written(current)


def rows_of(
    result: CellResult,
    cell: Cell,
    task: Task,
    *,
    digest: str,
    source: str,
    origin: Origin,
    time: str | None = None,
) -> list[Row]:
    """``result`` as rows of ``cell``, one for each measurement.

    A cell without measurements has one row for each metric of the task, so that its failure shows in every metric.
    The machine is the worker's, or this one where the worker could not give its own. ``time`` is that of the rows,
    by default the current one.
    """
    machine, gpu, torch = result.identity or identity(cell.device)
    shared = cell.columns() | {
        "run_id": origin.run_id,
        "time_utc": time or now(),
        "commit": origin.commit,
        "machine": machine,
        "gpu": gpu,
        "torch": torch,
        "task_version": task.version,
        "params": result.params,
        "flops_per_item": result.flops_per_item,
        "digest": digest,
        "source": source,
    }
    if not result.measurements:
        failed = [
            Measurement(metric=metric.name, value=None, status=result.status, message=result.message)
            for metric in task.metrics
        ]
        return [row(**shared, **measured_columns(one, task) | {"n": None}) for one in failed]
    return [row(**shared, **measured_columns(one, task)) for one in result.measurements]


def measured_columns(one: Measurement, task: Task) -> Row:
    """A measurement as the columns of its row."""
    metric = task.metric(one.metric)
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "better": metric.better,
        "axis": one.axis,
        "index": one.index,
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "status": str(one.status),
        "message": one.message,
        "n": one.count or (1 if one.samples is None else len(one.samples)),
        "samples": None if one.samples is None else json.dumps(one.samples),
        "paired": None if one.paired is None else json.dumps(one.paired),
    }


def now() -> str:
    """The current time of the system's clock, as text."""
    return written(datetime.now(UTC))


def written(time: datetime) -> str:
    """A time as ISO 8601 in UTC with microseconds, which sorts as text."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


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

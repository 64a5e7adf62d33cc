"""Rows: the result of a cell as rows of the store."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from highway_bench.cell import Cell
from highway_bench.execution.job import CellResult
from highway_bench.provenance import identity
from highway_bench.results.schema import Row, row
from highway_bench.tasks.base import Task
from highway_bench.tasks.measurement import Measurement


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

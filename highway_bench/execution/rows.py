"""Rows: what became of a cell, as the rows that the store keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from highway_bench.cell import Cell
from highway_bench.execution.job import CellResult
from highway_bench.provenance import identity
from highway_bench.results.schema import OUTCOMES, Row, row
from highway_bench.tasks.base import Task


@dataclass(frozen=True)
class Origin:
    """What all rows of a run share."""

    run_id: str
    commit: str | None


def rows_of(
    result: CellResult, cell: Cell, task: Task[Any], *, digest: str, origin: Origin, unpaired: str | None = None
) -> list[Row]:
    """``result`` as rows of ``cell``: one a value; for a cell without values, one a metric that the task declares.

    So whichever metric a reader asks for, the failure is there. ``unpaired`` is why the cell lost its group. The
    machine is the worker's; this one where the worker could not give it.
    """
    machine, gpu, torch = result.identity or identity(cell.device)
    shared = cell.columns() | {
        "run_id": origin.run_id,
        "time_utc": now(),
        "commit": origin.commit,
        "machine": machine,
        "gpu": gpu,
        "torch": torch,
        "task_version": task.version,
        "params": result.params,
        "flops_per_item": result.flops_per_item,
        "digest": digest,
    }
    if not result.values:
        return [
            row(
                **shared,
                metric=metric.name,
                unit=metric.unit,
                better=metric.better,
                status=result.status,
                message=result.message,
            )
            for metric in task.metrics
        ]
    rows = []
    for value in result.values:
        metric = task.metric(value.metric)
        message = value.message
        if unpaired is not None and value.status in OUTCOMES:
            message = "; ".join(filter(None, [f"unpaired: {unpaired}", message]))
        rows.append(
            row(
                **shared,
                metric=metric.name,
                unit=metric.unit,
                better=metric.better,
                axis=value.axis,
                index=value.index,
                value=value.value,
                low=value.low,
                high=value.high,
                status=value.status,
                message=message,
                n=1 if value.samples is None else len(value.samples),
                samples=None if value.samples is None else json.dumps(value.samples),
            )
        )
    return rows


def now() -> str:
    """This moment, ISO 8601 in UTC with microseconds: as text, later sorts after earlier."""
    return datetime.now(UTC).isoformat(timespec="microseconds")

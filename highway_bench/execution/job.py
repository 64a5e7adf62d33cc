"""Job and CellResult: what an engine sends to a worker, and what the worker returns for each cell. Plain data."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from highway_bench.cell import Cell
from highway_bench.provenance import Identity
from highway_bench.results.schema import Status
from highway_bench.source import Fingerprint
from highway_bench.tasks.measurement import Measurement


@dataclass(frozen=True, kw_only=True)
class Job:
    """Cells of one group, which a worker measures together.

    ``cells`` are the cells to run, and ``keys`` identify them to the runner, in the same order. ``mode`` has the cells'
    modes, separated by ``+``. With ``alone``, no other job may run on the same device at the same time. ``timeouts``
    are seconds, one for each cell; the job's own timeout is their sum. ``bytes`` is what the largest cell takes, by its
    task's closed form. ``checkpoints`` is the folder where a long measurement may store its state, under the cells'
    keys. ``sources`` are the modules that the cells run through, as read when the run was planned.
    """

    task: str
    keys: tuple[str, ...]
    cells: tuple[Cell, ...]
    mode: str
    threads: int
    alone: bool
    timeouts: tuple[float, ...]
    plugins: tuple[str, ...] = ()
    bytes: int = 0
    checkpoints: Path | None = None
    sources: Mapping[str, Fingerprint] = field(default_factory=dict)

    @property
    def timeout(self) -> float:
        return sum(self.timeouts)

    def single(self, index: int) -> Job:
        """The job of the cell at ``index`` alone."""
        one = slice(index, index + 1)
        return replace(self, keys=self.keys[one], cells=self.cells[one], timeouts=self.timeouts[one])

    def singles_left(self, ended: Collection[int]) -> list[Job]:
        """The jobs of the cells whose indices are not in ``ended``, one each."""
        return [self.single(index) for index in range(len(self.cells)) if index not in ended]

    def line(self) -> str:
        """This job as one line of JSON, without ``checkpoints``: that folder is on this machine's disk."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "checkpoints"}
        return json.dumps(values | {"cells": [cell.columns() for cell in self.cells]}, ensure_ascii=False)

    @classmethod
    def of_line(cls, line: str) -> Job:
        """The job that ``line`` was written from, without ``checkpoints``."""
        values: dict[str, Any] = json.loads(line)
        return cls(
            **values
            | {name: tuple(values[name]) for name in ("keys", "timeouts", "plugins")}
            | {
                "cells": tuple(map(Cell.of_columns, values["cells"])),
                "sources": {name: Fingerprint(*hashes) for name, hashes in values["sources"].items()},
            }
        )


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The result of one cell. ``index`` is the cell's position in the job.

    A cell without measurements has the reason in ``message``. ``identity`` is that of the machine on which it ran;
    ``None`` where the worker could not give it, for example because it was killed.
    """

    index: int
    status: Status
    message: str | None = None
    seconds: float = 0.0
    params: int | None = None
    flops_per_item: float | None = None
    measurements: tuple[Measurement, ...] = ()
    identity: Identity | None = None

    def line(self) -> str:
        """This result as one line of JSON, with its line break; raises ``ValueError`` for a number that is not
        finite."""
        return json.dumps(asdict(self), ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def of_line(cls, line: str) -> CellResult:
        """The result that ``line`` was written from."""
        fields: dict[str, Any] = json.loads(line)
        measurements = tuple(map(Measurement.of_plain, fields.pop("measurements")))
        ran_on, status = fields.pop("identity"), Status(fields.pop("status"))
        return cls(**fields, status=status, measurements=measurements, identity=Identity(*ran_on) if ran_on else None)


@dataclass(frozen=True)
class Began:
    """A worker is about to run this job."""

    job: Job


@dataclass(frozen=True)
class Ended:
    """One cell of a job has ended; the others may still be running."""

    job: Job
    result: CellResult

"""Job: cells measured together in one worker, and what comes back of each. Plain data that any engine can carry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from highway_bench.cell import Cell
from highway_bench.execution.digest import Fingerprint
from highway_bench.provenance import Identity
from highway_bench.results.schema import Status
from highway_bench.tasks.measurement import Measurement


@dataclass(frozen=True, kw_only=True)
class Job:
    """Cells of one group. ``keys`` name them to the one who asked, in the same order; ``cells`` are what is run.

    ``alone`` says that nothing else may run beside it. ``timeouts`` are seconds a cell; the job has their sum.
    ``mode`` joins the cells' modes with ``+``. ``unpaired`` is why a cell of a paired group is run singly; its rows
    say so. ``checkpoints`` is the folder in which a long measurement may keep its state, under the cells' keys.
    ``sources`` are the modules that the cells run through, as they were planned.
    """

    task: str
    keys: tuple[str, ...]
    cells: tuple[Cell, ...]
    mode: str
    threads: int
    alone: bool
    timeouts: tuple[float, ...]
    plugins: tuple[str, ...] = ()
    unpaired: str | None = None
    checkpoints: Path | None = None
    sources: Mapping[str, Fingerprint] = field(default_factory=dict)

    @property
    def timeout(self) -> float:
        return sum(self.timeouts)

    def single(self, place: int, unpaired: str | None) -> Job:
        """The job of the cell at ``place`` alone."""
        one = slice(place, place + 1)
        return replace(self, keys=self.keys[one], cells=self.cells[one], timeouts=self.timeouts[one], unpaired=unpaired)


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The result of one cell. ``place`` is its index in the job; a cell without measurements says why in ``message``.

    ``identity`` is that of the machine on which it ran; ``None`` where its worker could not give it, as one that was
    killed.
    """

    place: int
    status: Status
    message: str | None = None
    seconds: float = 0.0
    params: int | None = None
    flops_per_item: float | None = None
    measurements: tuple[Measurement, ...] = ()
    identity: Identity | None = None

    def line(self) -> str:
        """This result as one line of JSON; raises ``ValueError`` for a number that is not finite."""
        return json.dumps(asdict(self), ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def of_line(cls, line: str) -> CellResult:
        """The result that ``line`` gave."""
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

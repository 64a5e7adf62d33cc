"""Runner: measures the cells that a store lacks, and stores the rows of every cell as soon as it ends."""

from __future__ import annotations

import os
import platform
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from highway_bench.by_value import PICKLED
from highway_bench.cell import Cell
from highway_bench.errors import HighwayBenchError
from highway_bench.execution.engines import AnyEngine, Engine, make_engine
from highway_bench.execution.job import Began, CellResult, Ended
from highway_bench.execution.progress import Event, Finished, Opened, Started, TimeLeft
from highway_bench.execution.record import Origin, RunClock, descriptions, now, requested, rows_of
from highway_bench.execution.schedule import FAILED, Schedule, ScheduledCell, with_needs
from highway_bench.provenance import identity
from highway_bench.provenance.git import source_commit
from highway_bench.provenance.machine import cores, processor, torch_version
from highway_bench.registry import load_plugin
from highway_bench.results.database import DiskError
from highway_bench.results.schema import FAILURES, OUTCOMES, Status
from highway_bench.results.store import Store

NOTED = 1.0  # seconds between two notes of the progress in the store


@dataclass(frozen=True)
class Summary:
    """The result of a run: cells by status, including stored ones; the numbers ``measured`` in this run and ``stored``
    before.

    ``digests`` has the digest of each cell, under which the store has its rows.
    """

    run_id: str
    counts: dict[Status, int]
    measured: int
    stored: int
    seconds: float
    digests: dict[Cell, str]

    def __add__(self, later: Summary) -> Summary:
        """The cells of this run and of a ``later`` one, whose ``run_id`` it has."""
        return replace(
            later,
            counts=dict(Counter(self.counts) + Counter(later.counts)),
            measured=self.measured + later.measured,
            stored=self.stored + later.stored,
            seconds=self.seconds + later.seconds,
            digests=self.digests | later.digests,
        )

    @property
    def exit_status(self) -> int:
        """1 if a cell failed; 3 if no cell has a result, so that an empty run is never a success; else 0."""
        if any(self.counts.get(status) for status in FAILURES):
            return 1
        return 0 if any(self.counts.get(status) for status in OUTCOMES) else 3


def run_cells(
    cells: Iterable[Cell],
    store: Store,
    *,
    workers: int | None = None,
    plugins: Sequence[str] = (),
    rerun: str = FAILED,
    strict_source: bool = False,
    on_event: Callable[[Event], None] | None = None,
    engine: AnyEngine = "local",
    command: Sequence[str] | None = None,
) -> Summary:
    """Measure ``cells`` and the cells they need, and write each into ``store`` as it ends.

    ``workers`` processes run in parallel (by default, one per core). ``plugins`` are modules to import first, here and
    in the workers. Cells that the store has are not measured again, except those of ``rerun``: ``failed``, ``all``, or
    a pattern of names (see ``is_named``), and, with ``strict_source``, those whose rows are of another source than
    today.
    ``on_event`` is called in this process with every event. ``engine`` is the name of an engine, or an engine that has
    its workers already. ``command`` is stored in the run's record, by default
    ``sys.argv`` without the program's folder.

    On Ctrl-C the workers are stopped, the cells that ended are stored, those in training write a checkpoint (if their
    next step ends within three seconds), and ``KeyboardInterrupt`` is raised again. Raises ``BadInput`` for an unknown
    name or a plug-in that cannot be imported, before anything is measured.
    """
    began = time.monotonic()
    for plugin in plugins:
        load_plugin(plugin)
    schedule = Schedule(store, rerun, strict_source)
    schedule.add(with_needs(cells))
    schedule.check_rerun()
    with make_engine(engine, workers) as opened:  # before anything is planned: a cluster may refuse
        batch = schedule.ready()
        run = _Run(store, schedule, opened, on_event or (lambda event: None), began)
        run.report_plan()
        if schedule.items:
            run.open(plugins, command)
        try:
            while batch:
                run.measure(batch, plugins)
                batch = schedule.ready()
                run.leave_out_stored()
        finally:
            run.close()
    schedule.check_all_ended()
    schedule.sweep()
    return run.summary()


class _Run:
    """The state of one run: its identity, its record and its progress in the store, its events."""

    def __init__(
        self, store: Store, schedule: Schedule, engine: Engine, on_event: Callable[[Event], None], began: float
    ) -> None:
        self.run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        self.began = began
        self.measured = 0
        self._done = 0
        self._store = store
        self._schedule = schedule
        self._engine = engine
        self._on_event = on_event
        self._record: dict[str, Any] = {}
        self._noted = 0.0
        self._clock = RunClock(store.last_time())
        self._in_progress: dict[str, Cell] = {}
        self._open = [item for item in schedule.items.values() if item.status is None]
        self._time_left = TimeLeft(self._open, engine.workers)

    def report_plan(self) -> None:
        items = self._schedule.items.values()
        stored = [item for item in items if item.stored]
        self._on_event(
            Opened(
                cells=len(items),
                stored=len(stored),
                other_sources=len(self._schedule.of_other_sources(stored)),
                resumed=self._schedule.count_resumed(),
                left=self._time_left.seconds,
            )
        )

    def open(self, plugins: Sequence[str], command: Sequence[str] | None) -> None:
        """Write the run's record, before the first of its rows."""
        cells = list(self._schedule.items)
        devices = sorted({cell.device for cell in cells})
        self._record = {
            "commit": source_commit(),
            "torch": torch_version(),
            "python": platform.python_version(),
            "os": f"{platform.system()} {platform.release()} {platform.machine()}",
            "cores": cores(),
            "processor": processor()._asdict(),
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]] if command is None else list(command),
            "plugins": [one for one in plugins if not one.startswith(PICKLED)],
            "started": self._clock.now(),
            "finished": None,
            "machines": {device: identity(device).machine for device in devices},
            "requested": requested(cells),
        } | descriptions(cells)
        self._origin = Origin(self.run_id, self._record["commit"])
        self._store.add_run(self.run_id, self._record)
        self._note(due=True)

    def close(self) -> None:
        """Complete the record with the digests of all cells that have a result, including stored ones.

        From these a report knows which of a cell's digests was requested last. After an edit was undone, that is an
        older digest than the last one measured.
        """
        if self._record:
            self._in_progress.clear()
            self._note(due=True)
            digests = sorted({item.digest for item in self._schedule.items.values() if item.status is not None})
            self._store.add_run(
                self.run_id,
                self._record | {"finished": self._clock.now(), "measured": self.measured, "digests": digests},
            )

    def measure(self, items: Sequence[ScheduledCell], plugins: Sequence[str]) -> None:
        """Run ``items`` and store the rows of each."""
        self._done = self._counts().total()
        by_digest = {item.digest: item for item in items}
        for item in items:
            if item.refused is not None:
                self._store_rows(item, CellResult(index=0, status=item.refused[0], message=item.refused[1]))
        jobs = self._schedule.jobs([item for item in items if item.refused is None], plugins)
        try:
            for event in self._engine.run(jobs):
                if isinstance(event, Began):
                    cells = {key: by_digest[key].cell for key in event.job.keys}
                    self._in_progress |= cells
                    self._note()
                    self._on_event(Started(tuple(cells.values())))
                else:
                    self._store_ended(by_digest, event)
        except (KeyboardInterrupt, HighwayBenchError):  # also where the engine cannot go on
            for event in self._engine.drain():
                self._store_ended(by_digest, event)
            raise

    def leave_out_stored(self) -> None:
        """Take the cells that waited for others, and that the store has, out of the remaining time."""
        for item in self._open:
            if item.stored:
                self._time_left.ended(item, None)
        self._open = [item for item in self._open if item.status is None]

    def summary(self) -> Summary:
        items = self._schedule.items.values()
        return Summary(
            self.run_id,
            dict(self._counts()),
            self.measured,
            sum(item.stored for item in items),
            time.monotonic() - self.began,
            {item.cell: item.digest for item in items},
        )

    def _counts(self) -> Counter[Status]:
        """How many cells have ended, by status, those that were stored before included."""
        return Counter(item.status for item in self._schedule.items.values() if item.status is not None)

    def _store_ended(self, by_digest: dict[str, ScheduledCell], event: Ended) -> None:
        item = by_digest[event.job.keys[event.result.index]]
        self._store_rows(item, self._schedule.checked(item, event.result))

    def _store_rows(self, item: ScheduledCell, result: CellResult) -> None:
        try:
            self._put(item, result)
        except (DiskError, TypeError, ValueError) as error:  # too large for the disk, or a plug-in's odd values
            why = f"its result could not be stored: {error}"
            result = CellResult(index=result.index, status=Status.FAILED, message=why, seconds=result.seconds)
            self._put(item, result)  # raises where not even this fits
        self._in_progress.pop(item.digest, None)
        item.status = Status(result.status)
        self.measured += 1
        self._done += 1
        self._time_left.ended(item, None if item.refused else result.seconds)
        self._note()
        cells, left = len(self._schedule.items), self._time_left.seconds
        self._on_event(Finished(item.cell, item.status, result.message, result.seconds, self._done, cells, left))

    def _put(self, item: ScheduledCell, result: CellResult) -> None:
        rows = rows_of(
            result,
            item.cell,
            item.task,
            digest=item.digest,
            source=self._schedule.source(item.cell),
            origin=self._origin,
            time=self._clock.now(),
        )
        self._store.put(item.digest, rows)

    def _note(self, *, due: bool = False) -> None:
        """Store how far the run is, at most once a second: another process can read it, after a kill too."""
        if not due and time.monotonic() - self._noted < NOTED:
            return
        self._noted = time.monotonic()
        progress = {
            "run_id": self.run_id,
            "process": os.getpid(),
            "updated": now(),
            "cells": len(self._schedule.items),
            "counts": self._counts(),
            "left": self._time_left.seconds,
            "running": list(map(str, self._in_progress.values())),
        }
        with suppress(DiskError):  # a result must be stored, a note need not
            self._store.set_progress(progress)

"""Old keys: cells that a store has under digests from before ``KEYED``, and the keys that they have today.

Until schema 4 a digest was of the source itself, so every change of source made rows unknown. Such rows are found by
their columns: the cell, the version of its task, torch's minor version, and the machine of a meter. All else that they
ran had its first version, so they are results of today's cell where that runs first versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from highway_bench.cell import Cell
from highway_bench.execution.key import is_first, minor
from highway_bench.provenance import identity
from highway_bench.provenance.former_names import machine_of
from highway_bench.results.schema import Status
from highway_bench.results.store import Store

if TYPE_CHECKING:
    from highway_bench.execution.schedule import ScheduledCell


class Stored(NamedTuple):
    """A cell with an old digest: the machine that measured it, by today's name, and its status with the message."""

    digest: str
    machine: str
    status: str
    message: str | None


class OldKeys:
    """The cells of ``store`` that have old digests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def adopt(self, items: Iterable[ScheduledCell]) -> dict[str, Status]:
        """Give the rows of ``items`` that have an old digest today's key; the status of each, by key.

        In a store that is only read, the item gets the old digest instead.
        """
        if not self._cells:
            return {}
        found = {item.digest: (item, old) for item in items if (old := self._found(item)) is not None}
        statuses = self._store.digests()
        ended = {}
        for key, (item, old) in found.items():
            item.digest = old.digest if self._store.read_only else key
            ended[item.digest] = statuses[old.digest]
        if not self._store.read_only:
            self._store.rekey({old.digest: (key, old.machine) for key, (_, old) in found.items()})
        return ended

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str], list[Stored]]:
        """By cell, version of the task and torch's minor version: what the store has, oldest first."""
        cells: dict[tuple[str, str, str], list[Stored]] = {}
        rows = self._store.cells_before_keys()
        runs = self._store.runs() if rows else {}
        for row in rows:
            machine = machine_of(row["machine"], runs.get(row["run_id"], {}))
            what = Cell.of_columns(row).key, row["task_version"], minor(row["torch"])
            cells.setdefault(what, []).append(Stored(row["digest"], machine, row["status"], row["message"]))
        return cells

    def _found(self, item: ScheduledCell) -> Stored | None:
        """The newest old result of ``item``."""
        if not is_first(item.versions):
            return None
        where = identity(item.cell.device)
        stored = self._cells.get((item.cell.key, item.task.version, minor(where.torch)), [])
        return next((one for one in reversed(stored) if self._is_of(one, item, where.machine)), None)

    def _is_of(self, old: Stored, item: ScheduledCell, machine: str) -> bool:
        if item.task.meter and old.machine != machine:
            return False
        if item.refused is not None:  # the same refusal
            return (old.status, old.message) == item.refused
        if not item.needs:
            return True
        rate = self._store.scalars(old.digest).get("rate")  # of the winner of that time
        return old.status != Status.SKIPPED and rate in (None, item.ran.recipe.get("rate"))

"""Store: rows and runs in one SQLite file. One process writes it, a cell at a time; any number of processes read it.

A cell's rows are replaced in one transaction, so a kill at any moment leaves whole cells only. The journal is
write-ahead (WAL), so the page can be written from a store that a run is still filling. A lock file next to the store
excludes a second writer.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from highway_bench.errors import BadInput, UnknownName
from highway_bench.results.database import BEFORE_KEYS, check_before_writing, connected, explained, locked, prepared
from highway_bench.results.integrity import check_contents, columns_of, problems
from highway_bench.results.parquet import ATTEMPT, SHARED, joined, packed
from highway_bench.results.schema import (
    COLUMNS,
    FAILURES,
    LATER_ATTEMPT,
    OWN,
    REALS,
    SCHEMA,
    Row,
    Status,
    attempts_in,
    stored,
    worst,
)

if TYPE_CHECKING:
    import pandas as pd

AS_WRITTEN = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:*"  # a time, as runs write it


class Rows(Protocol):
    """Cells and runs that a store can take: another store, or an exported file."""

    def times(self) -> dict[str, set[str]]:
        """By digest, the times of the last result and of a later attempt that measured less."""

    def values(self, digests: Collection[str]) -> Iterable[tuple[Any, ...]]:
        """The rows of these cells, each as its values in the order of ``COLUMNS``."""

    def runs(self) -> dict[str, dict[str, Any]]:
        """Every run's provenance by its id."""


@dataclass(frozen=True)
class MergeCounts:
    """Cells of another store: ``added`` here, ``replaced`` what was here, the ``same`` as here, or ``older`` than here
    and left out."""

    added: int = 0
    replaced: int = 0
    same: int = 0
    older: int = 0

    @property
    def changed(self) -> int:
        return self.added + self.replaced


class Store:
    """The rows and runs in the SQLite file ``path``; a context manager.

    Opened for writing, a missing file and its folders are created, and no other process can write until ``close``.
    Opened ``read_only``, the file must exist. Raises ``BadInput``, in one line, for a path that cannot be written or
    read, that another process is writing, that is damaged or no store, or that a newer version wrote. An older store is
    migrated when it is opened for writing, after a backup next to it; ``read_only`` it is read as it is. A damaged file
    is never written, nor one with values that no run writes. ``DiskError`` is raised, here and by every method, where
    the disk is full or fails. With ``checked=False`` the contents of a ``read_only`` file are not checked, so that
    ``problems`` can list what is wrong.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False, checked: bool = True) -> None:
        self.path = Path(path)
        self.read_only = read_only
        if read_only and not os.path.isfile(self.path):  # False for a name that is too long, where Path.is_file raises
            raise BadInput(f"no store at {self.path}")
        with explained(self.path), ExitStack() as opened:
            if not read_only:
                opened.callback(locked(self.path).release)
                check_before_writing(self.path)
            self._db = connected(self.path, read_only)
            opened.callback(self._db.close)
            version = prepared(self._db, self.path, read_only)
            if read_only and checked:
                check_contents(self._db, self.path, version)
            self._columns = columns_of(version)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release the lock; a second call does nothing."""
        self._opened.close()

    def put(self, digest: str, rows: Iterable[Row]) -> None:
        """Replace all rows of ``digest`` by ``rows``, in one transaction.

        Rows that measured less than the stored ones (a failure, a skip) do not replace them: they are added as one row
        on the axis ``LATER_ATTEMPT``. Raises ``ValueError`` for rows of another digest, two with the same metric, axis
        and index, or a number that is not finite.
        """
        rows = list(rows)
        if any(row["digest"] != digest for row in rows):
            raise ValueError("rows of another digest")
        if any(row[name] is not None and not math.isfinite(row[name]) for row in rows for name in REALS):
            raise ValueError("a number that is not finite: store null and say so in the message")
        with explained(self.path), self._db:
            self._put(digest, stored([*attempts_in(self.rows(digest=digest)), rows]))

    def digests(self) -> dict[str, Status]:
        """Every stored digest with its cell's status: of its rows' statuses, the first in ``RANK``.

        A later attempt that failed counts, so that the cell is measured again; one that was skipped does not.
        """
        statuses: dict[str, Status] = {}
        with explained(self.path):
            # From the index "cells", a fraction of the table; only a skip needs its row, for the axis.
            for digest, text in self._db.execute(
                'SELECT DISTINCT "digest", "status" FROM "rows" INDEXED BY "cells" WHERE "status" IS NOT ? UNION ALL '
                'SELECT DISTINCT "digest", "status" FROM "rows" INDEXED BY "cells" '
                'WHERE "status" = ? AND "axis" IS NOT ?',
                (Status.SKIPPED, Status.SKIPPED, LATER_ATTEMPT),
            ):
                statuses[digest] = worst([text, statuses.get(digest, text)])
        return statuses

    def sources(self, digests: Iterable[str]) -> dict[str, str | None]:
        """The hash of the source that each of these cells ran; ``None`` where it is not known."""
        query = 'SELECT "source" FROM "rows" WHERE "digest" = ? LIMIT 1'
        if "source" not in self._columns:
            return dict.fromkeys(digests)
        with explained(self.path):
            return {digest: found[0] for digest in digests if (found := self._db.execute(query, (digest,)).fetchone())}

    def cells_before_keys(self) -> list[Row]:
        """One row of each cell whose digest is older than ``KEYED``, oldest first."""
        where = f'rowid IN (SELECT min(rowid) FROM "rows" WHERE {BEFORE_KEYS} GROUP BY "digest")'
        with explained(self.path):
            rows = [dict(zip(COLUMNS, found, strict=True)) for found in self._select(COLUMNS, where, ())]
        return sorted(rows, key=lambda row: row["time_utc"] or "")

    def rekey(self, cells: Mapping[str, tuple[str, str]]) -> None:
        """Give cells that are older than ``KEYED``, by their digest, the key and the machine's name of today.

        The runs that requested them request the new keys. One transaction changes all or nothing.
        """
        with explained(self.path), self._db:
            self._db.executemany(
                'UPDATE "rows" SET "digest" = ?, "machine" = ?, "old_digest" = "digest", "schema" = ? '
                'WHERE "digest" = ?',
                [(key, machine, SCHEMA, old) for old, (key, machine) in cells.items()],
            )
            for run_id, record in self.runs().items():
                if cells.keys() & set(record.get("digests", ())):
                    keys = [cells[old][0] if old in cells else old for old in record["digests"]]
                    self._add_run(run_id, record | {"digests": sorted(keys)})

    def count_cells(self) -> int:
        """How many cells have rows."""
        with explained(self.path):
            return int(self._db.execute('SELECT count(DISTINCT "digest") FROM "rows"').fetchone()[0])

    def rows(self, **filters: Any) -> list[Row]:
        """The rows whose columns equal ``filters``, in the order of storing; a list matches any of its values.

        Raises ``UnknownName`` for a filter that is no column.
        """
        with explained(self.path):
            return [dict(zip(COLUMNS, found, strict=True)) for found in self._select(COLUMNS, *self._where(filters))]

    def scalars(self, digest: str) -> dict[str, float | None]:
        """The values of one cell's metrics that have no axis, by name."""
        with explained(self.path):
            return dict(
                self._db.execute(
                    'SELECT "metric", "value" FROM "rows" WHERE "digest" = ? AND "axis" = \'\'', (digest,)
                ).fetchall()
            )

    def frame(self, **filters: Any) -> pd.DataFrame:
        """``rows`` as a frame: integers nullable (``Int64``), reals ``float64``, text and JSON as categories."""
        where, values = self._where(filters)
        first = f'rowid IN (SELECT min(rowid) FROM "rows" WHERE {where} GROUP BY {ATTEMPT})'
        with explained(self.path), self._snapshot():
            rows = packed(OWN, self._select(OWN, where, values, ATTEMPT))
            attempts = packed(SHARED, self._select(SHARED, first, values, ATTEMPT))
        return joined(rows, attempts)

    def add_run(self, run_id: str, provenance: Mapping[str, Any]) -> None:
        """Store a run's provenance: command, machine, versions, start, and the descriptions of its blocks and families.

        A stored run of the same id is replaced.
        """
        with explained(self.path), self._db:
            self._add_run(run_id, provenance)

    def runs(self) -> dict[str, dict[str, Any]]:
        """Every run's provenance by its id, oldest first."""
        with explained(self.path):
            runs = self._db.execute("SELECT run_id, provenance FROM runs ORDER BY rowid").fetchall()
        return {run_id: json.loads(text) for run_id, text in runs}

    def last_time(self) -> str | None:
        """The newest time of a row, or of a run's start or end; ``None`` where there is none."""
        parts = [
            f"SELECT max({time}) AS time FROM {table} WHERE {time} GLOB '{AS_WRITTEN}'"
            for time, table in (
                ('"time_utc"', '"rows"'),
                ("json_extract(provenance, '$.started')", "runs"),
                ("json_extract(provenance, '$.finished')", "runs"),
            )
        ]
        with explained(self.path):
            (last,) = self._db.execute(f"SELECT max(time) FROM ({' UNION ALL '.join(parts)})").fetchone()
        return None if last is None else str(last)

    def set_progress(self, progress: Mapping[str, Any]) -> None:
        """Store how far the run that writes this store is, for other processes; it replaces the last one."""
        with explained(self.path), self._db:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('progress', ?)", (json.dumps(progress),))

    def progress(self) -> dict[str, Any] | None:
        """What ``set_progress`` stored last; ``None`` before the first run."""
        with explained(self.path):
            entry = self._db.execute("SELECT value FROM meta WHERE name = 'progress'").fetchone()
        return None if entry is None else dict(json.loads(entry[0]))

    def failures(self, run_id: str) -> list[Row]:
        """One row of each cell that failed in the run, oldest first."""
        found: dict[str, Row] = {}
        for one in self.rows(run_id=run_id, status=sorted(FAILURES)):
            found.setdefault(one["digest"], one)
        return list(found.values())

    def problems(self) -> list[str]:
        """What is wrong in the whole file, a line each; empty for a sound store. It takes seconds a million rows."""
        with explained(self.path):
            return list(problems(self._db, self._columns))

    def take(self, others: Iterable[Rows]) -> list[MergeCounts]:
        """Add the runs of ``others``, and their cells that are missing or older here; what was taken of each.

        A cell has its newest result afterwards, and the last later attempt that measured less. One transaction adds
        either all of ``others`` or nothing.
        """
        with explained(self.path), self._db:
            here = self.times()
            return [self._take(other, here) for other in others]

    def _take(self, other: Rows, here: dict[str, set[str]]) -> MergeCounts:
        """As ``take``; ``here`` are this store's times, which follow."""
        there = other.times()
        added = there.keys() - here.keys()
        self._insert(other.values(added))
        known = {digest for digest in there.keys() & here.keys() if there[digest] <= here[digest]}
        counts = Counter(added=len(added), same=len(known))
        for digest in there.keys() - added - known:
            mine = self.rows(digest=digest)
            theirs = [dict(zip(COLUMNS, values, strict=True)) for values in other.values([digest])]
            attempts = [*attempts_in(theirs), *attempts_in(mine)]
            rows = stored(sorted(attempts, key=lambda attempt: max(row["time_utc"] or "" for row in attempt)))
            if rows == mine:
                counts["older"] += 1
                continue
            self._put(digest, rows)
            here[digest] |= there[digest]
            counts["replaced"] += 1
        here |= {digest: there[digest] for digest in added}
        runs = self.runs()
        for run_id, provenance in other.runs().items():
            if run_id not in runs or (provenance.get("finished") and not runs[run_id].get("finished")):
                self._add_run(run_id, provenance)
        return MergeCounts(**counts)

    def values(self, digests: Collection[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of these cells, each as its values in the order of ``COLUMNS``."""
        yield from self._select(COLUMNS, *self._where({"digest": digests}))

    def times(self) -> dict[str, set[str]]:
        """By digest, the times of the last result and of a later attempt that measured less."""
        times: dict[str, set[str]] = {}
        with explained(self.path):
            for digest, time in self._db.execute(
                'SELECT "digest", max("time_utc") FROM "rows" GROUP BY "digest", "axis" = ?', (LATER_ATTEMPT,)
            ):
                times.setdefault(digest, set()).add(time)
        return times

    def _put(self, digest: str, rows: list[Row]) -> None:
        self._db.execute('DELETE FROM "rows" WHERE "digest" = ?', (digest,))
        self._insert([row[name] for name in COLUMNS] for row in rows)

    def _insert(self, rows: Iterable[Sequence[Any]]) -> None:
        names, places = ", ".join(f'"{name}"' for name in COLUMNS), ", ".join("?" * len(COLUMNS))
        self._db.executemany(f'INSERT INTO "rows" ({names}) VALUES ({places})', rows)

    def _add_run(self, run_id: str, provenance: Mapping[str, Any]) -> None:
        self._db.execute(
            "INSERT INTO runs VALUES (?, ?) ON CONFLICT DO UPDATE SET provenance = excluded.provenance",
            (run_id, json.dumps(provenance, ensure_ascii=False, allow_nan=False)),
        )

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Within it, all reads see the same rows, whatever another process writes."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.rollback()

    def _where(self, filters: Mapping[str, Any]) -> tuple[str, list[str]]:
        """The condition in SQL that columns equal ``filters``, and its parameters."""
        where, values = ["1"], []
        for name, wanted in filters.items():
            if name not in COLUMNS:
                raise UnknownName("column", name, COLUMNS)
            several = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
            known = [value for value in several if value is not None]
            null = f' OR "{name}" IS NULL' if len(known) < len(several) else ""
            where.append(f'("{name}" IN (SELECT value FROM json_each(?)){null})')  # any number of values
            values.append(json.dumps(known))
        return " AND ".join(where), values

    def _select(self, columns: Iterable[str], where: str, values: Sequence[str], *also: str) -> sqlite3.Cursor:
        """The rows in the order of storing: ``columns``, null where an older store lacks one, then expressions."""
        known = [*(f'"{name}"' if name in self._columns else "NULL" for name in columns), *also]
        return self._db.execute(f'SELECT {", ".join(known)} FROM "rows" WHERE {where} ORDER BY rowid', values)

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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from filelock import FileLock, Timeout

from highway_bench.errors import BadInput, UnknownName
from highway_bench.provenance.lock import file_lock, holder
from highway_bench.results.attempts import attempts_in, stored
from highway_bench.results.migration import columns_of, migrate
from highway_bench.results.schema import COLUMNS, LATER_ATTEMPT, SCHEMA, UNIQUE, Row, Status, worst

if TYPE_CHECKING:
    import pandas as pd

BUSY_MS = 10_000  # how long a statement waits for another connection's lock

REALS = tuple(name for name, (kind, _) in COLUMNS.items() if kind == "REAL")


class Store:
    """The rows and runs in the SQLite file ``path``; a context manager.

    Opened for writing, a missing file and its folders are created, and no other process can write until ``close``.
    Opened ``read_only``, the file must exist. Raises ``BadInput``, in one line, for a path that cannot be written or
    read, that another process is writing, that is damaged or no store, or that a newer version wrote. An older store is
    migrated when it is opened for writing, after a backup next to it; ``read_only`` it is read as it is.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._lock: FileLock | None = None
        if read_only:
            if not os.path.isfile(self.path):  # False for a name that is too long, where Path.is_file raises
                raise BadInput(f"no store at {self.path}")
        else:
            self._lock = _locked(self.path)
        try:
            with self._explained():
                self._db = _connected(self.path, read_only)
            try:
                with self._explained():
                    self._prepare()
            except BaseException:
                self._db.close()
                raise
        except BaseException:
            self._release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release the lock; a second call does nothing."""
        self._db.close()
        self._release()

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
        with self._explained(), self._db:
            self._put(digest, stored([*attempts_in(self.rows(digest=digest)), rows]))

    def digests(self) -> dict[str, Status]:
        """Every stored digest with its cell's status: of its rows' statuses, the first in ``RANK``.

        A later attempt that failed counts, so that the cell is measured again; one that was skipped does not.
        """
        statuses: dict[str, Status] = {}
        with self._explained():
            for digest, text in self._db.execute(
                'SELECT DISTINCT "digest", "status" FROM "rows" WHERE "axis" IS NOT ? OR "status" IS NOT ?',
                (LATER_ATTEMPT, Status.SKIPPED),
            ):
                statuses[digest] = worst([text, statuses.get(digest, text)])
        return statuses

    def rows(self, **filters: Any) -> list[Row]:
        """The rows whose columns equal ``filters``, in the order of storing; a list matches any of its values.

        Raises ``UnknownName`` for a filter that is no column.
        """
        with self._explained():
            return [dict(zip(COLUMNS, values, strict=True)) for values in self._select(filters)]

    def scalars(self, digest: str) -> dict[str, float | None]:
        """The values of one cell's metrics that have no axis, by name."""
        with self._explained():
            return dict(
                self._db.execute(
                    'SELECT "metric", "value" FROM "rows" WHERE "digest" = ? AND "axis" = \'\'', (digest,)
                ).fetchall()
            )

    def frame(self, **filters: Any) -> pd.DataFrame:
        """``rows`` as a frame: integers nullable (``Int64``), reals ``float64``, JSON as text."""
        import pandas as pd

        with self._explained():
            frame = pd.DataFrame.from_records(self._select(filters).fetchall(), columns=list(COLUMNS))
        kinds = {"INTEGER": "Int64", "REAL": "float64", "TEXT": "str"}
        return frame.astype({name: kinds[kind] for name, (kind, _) in COLUMNS.items()})

    def add_run(self, run_id: str, provenance: Mapping[str, Any]) -> None:
        """Store a run's provenance: command, machine, versions, start, and the descriptions of its blocks and families.

        A stored run of the same id is replaced.
        """
        with self._explained(), self._db:
            self._add_run(run_id, provenance)

    def runs(self) -> dict[str, dict[str, Any]]:
        """Every run's provenance by its id, oldest first."""
        with self._explained():
            runs = self._db.execute("SELECT run_id, provenance FROM runs ORDER BY rowid").fetchall()
        return {run_id: json.loads(text) for run_id, text in runs}

    def take(self, other: Store) -> int:
        """Add ``other``'s runs and its cells that are missing or older here, and return the number of changed cells.

        A cell has its newest result afterwards, and the last later attempt that measured less. One transaction adds
        either all of ``other`` or nothing.
        """
        taken = 0
        with self._explained(), self._db:
            here = self._times()
            for digest, times in other._times().items():
                if times <= here.get(digest, set()):
                    continue
                mine = self.rows(digest=digest)
                attempts = [*attempts_in(other.rows(digest=digest)), *attempts_in(mine)]
                rows = stored(sorted(attempts, key=lambda attempt: max(row["time_utc"] or "" for row in attempt)))
                if rows != mine:
                    self._put(digest, rows)
                    taken += 1
            known = self.runs()
            for run_id, provenance in other.runs().items():
                if run_id not in known:
                    self._add_run(run_id, provenance)
        return taken

    def _put(self, digest: str, rows: list[Row]) -> None:
        self._db.execute('DELETE FROM "rows" WHERE "digest" = ?', (digest,))
        self._db.executemany(
            f'INSERT INTO "rows" ({", ".join(map(quoted, COLUMNS))}) VALUES ({", ".join("?" * len(COLUMNS))})',
            [[row[name] for name in COLUMNS] for row in rows],
        )

    def _add_run(self, run_id: str, provenance: Mapping[str, Any]) -> None:
        self._db.execute(
            "INSERT INTO runs VALUES (?, ?) ON CONFLICT DO UPDATE SET provenance = excluded.provenance",
            (run_id, json.dumps(provenance, ensure_ascii=False, allow_nan=False)),
        )

    def _times(self) -> dict[str, set[tuple[bool, str]]]:
        """By digest, the time of the last result (``False``) and of a later attempt that measured less (``True``)."""
        times: dict[str, set[tuple[bool, str]]] = {}
        with self._explained():
            for digest, later, time in self._db.execute(
                'SELECT "digest", "axis" = ?, max("time_utc") FROM "rows" GROUP BY 1, 2', (LATER_ATTEMPT,)
            ):
                times.setdefault(digest, set()).add((bool(later), time))
        return times

    def _select(self, filters: Mapping[str, Any]) -> sqlite3.Cursor:
        where, values = ["1"], []
        for name, wanted in filters.items():
            if name not in COLUMNS:
                raise UnknownName("column", name, COLUMNS)
            several = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
            known = [value for value in several if value is not None]
            null = f' OR "{name}" IS NULL' if len(known) < len(several) else ""
            where.append(f'("{name}" IN (SELECT value FROM json_each(?)){null})')  # any number of values
            values.append(json.dumps(known))
        columns = ", ".join(f'"{name}"' if name in self._columns else f'NULL AS "{name}"' for name in COLUMNS)
        return self._db.execute(f'SELECT {columns} FROM "rows" WHERE {" AND ".join(where)} ORDER BY rowid', values)

    def _prepare(self) -> None:
        """Check that the file is a store of a known schema; create the tables in a new file opened for writing."""
        if not self.read_only:
            self._db.execute("BEGIN IMMEDIATE")  # a file that cannot be written fails now, not after the first cell
            self._db.rollback()
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if not tables and not self.read_only:
            self._create()
        elif not tables:  # the process that created the file has not created the tables yet
            raise BadInput(f"{self.path} is empty: nothing is stored there yet")
        elif not {"meta", "rows", "runs"} <= tables:
            raise BadInput(f"{self.path} is a database, but no highway_bench store")
        entry = self._db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        version = int(entry[0]) if entry and str(entry[0]).isdecimal() else None
        if version is None:
            raise BadInput(f"{self.path} does not say which schema it has; it is damaged or no highway_bench store")
        if version < 1:
            raise BadInput(f"{self.path} has schema {version}, which never existed; it is damaged")
        if version > SCHEMA:
            raise BadInput(f"{self.path} has schema {version}, this version reads up to {SCHEMA}: update highway_bench")
        self._columns = {name for _, name, *_ in self._db.execute('PRAGMA table_info("rows")')}
        if self._columns != columns_of(version):
            raise BadInput(f"{self.path}: the columns of its rows are not those of schema {version}; it is damaged")
        if version < SCHEMA and not self.read_only:
            migrate(self._db, self.path, version)
            self._columns = set(COLUMNS)

    def _create(self) -> None:
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
        unique = ", ".join(f'"{name}"' for name in UNIQUE)
        self._db.execute("PRAGMA journal_mode = WAL")
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")  # tables and version together, or none of them
            self._db.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._db.execute(f'CREATE TABLE "rows" ({columns}, UNIQUE ({unique}))')
            self._db.execute('CREATE INDEX "cells" ON "rows" ("digest", "status", "time_utc")')
            self._db.execute("CREATE TABLE runs (run_id TEXT PRIMARY KEY, provenance TEXT NOT NULL)")
            self._db.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA),))

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into one line about this file; a violated constraint is the caller's ``ValueError``."""
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise ValueError(f"rows that contradict each other: {error}") from error
        except sqlite3.DatabaseError as error:
            raise BadInput(f"store {self.path}: {error}{_advice(error)}") from error


def quoted(name: str) -> str:
    """A column's name for SQL."""
    return f'"{name}"'


def _advice(error: sqlite3.DatabaseError) -> str:
    text = str(error)
    if "not a database" in text or "malformed" in text:
        return " (it is damaged, or no store: move it away or name another)"
    return " (another process is using it)" if "locked" in text else ""


def _locked(path: Path) -> FileLock:
    """Create ``path``'s folder and acquire the lock next to it."""
    if os.path.isdir(path):
        raise BadInput(f"cannot write the store {path}: it is a folder")
    lock = file_lock(path.with_name(path.name + ".lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        process = holder(Path(lock.lock_file))
        by = f" (process {process})" if process else ""
        raise BadInput(f"the store {path} is being written by another run{by}: wait for it, or name another") from error
    except OSError as error:
        raise BadInput(f"cannot write the store {path}: {error.strerror}") from error
    return lock


def _connected(path: Path, read_only: bool) -> sqlite3.Connection:
    """Connect to the database; an existing file that is no database raises here."""
    if not read_only:
        db = sqlite3.connect(path, timeout=BUSY_MS / 1000)
    else:
        journal = path.with_name(path.name + "-wal")
        # A reader of a WAL database must be able to write in its folder, unless nobody else can be writing.
        frozen = not os.access(path.parent, os.W_OK) and not (journal.exists() and journal.stat().st_size)
        mode = "immutable=1" if frozen else "mode=ro"
        db = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=BUSY_MS / 1000)
    try:
        db.execute("PRAGMA synchronous = NORMAL")  # with WAL a kill loses nothing, a power cut the last cells
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        with suppress(sqlite3.Error):
            db.close()
        raise
    return db

"""The file of a store: its lock, its connection, its migration to the current schema, and SQLite's errors as one line.

The older file stays next to a migrated store as a backup.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from highway_bench.errors import BadInput, HighwayBenchError
from highway_bench.provenance.lock import file_lock, holder
from highway_bench.results.integrity import ADDED, check_contents, check_schema
from highway_bench.results.schema import COLUMNS, KEYED, SCHEMA, UNIQUE

DISK = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
MOMENT = 0.2  # seconds to wait for the lock: another process may be testing it
CACHE_KIB = 256 * 2**10  # most memory for pages: the keys of many cells are written in no order
BUSY_MS = 10_000  # how long a statement waits for another connection's lock
BEFORE_KEYS = f'"schema" < {KEYED}'


class DiskError(HighwayBenchError):
    """The disk of a store is full, or cannot be read or written. What was stored before is safe."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into one line about the file ``path``; values that it cannot store are the caller's
    ``ValueError``."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, OverflowError) as error:
        raise ValueError(f"rows that cannot be stored: {error}") from error
    except sqlite3.DatabaseError as error:
        if (getattr(error, "sqlite_errorcode", 0) & 0xFF) in DISK:  # the low byte is the kind of error
            raise DiskError(f"store {path}: {error}: what was stored before is safe") from error
        raise BadInput(f"store {path}: {error}{_advice(path, error)}") from error


def _advice(path: Path, error: sqlite3.DatabaseError) -> str:
    text = str(error)
    if path.suffix == ".parquet":
        return " (load Parquet files into a store first: highway-bench results import)"
    if "not a database" in text or "malformed" in text:
        return f" (damaged, or no store: highway-bench results check --store {path} --salvage NEW reads what it can)"
    return " (another process is using it)" if "locked" in text else ""


def lock_path(path: Path) -> Path:
    """The lock of the store at ``path``."""
    return path.with_name(path.name + ".lock")


def locked(path: Path) -> FileLock:
    """Create ``path``'s folder and acquire the lock next to it."""
    if os.path.isdir(path):
        raise BadInput(f"cannot write the store {path}: it is a folder")
    lock = file_lock(lock_path(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=MOMENT)
    except Timeout as error:
        process = holder(Path(lock.lock_file))
        by = f" (process {process})" if process else ""
        raise BadInput(f"the store {path} is being written by another run{by}: wait for it, or name another") from error
    except OSError as error:
        raise BadInput(f"cannot write the store {path}: {error.strerror}") from error
    return lock


def check_before_writing(path: Path) -> None:
    """Check an existing file by a connection that cannot write: a damaged file stays as it is."""
    if not os.path.isfile(path) or path.stat().st_size == 0:
        return
    with closing(connected(path, read_only=True)) as db:
        version = check_schema(db, path)
        if version is not None:
            check_contents(db, path, version)


def connected(path: Path, read_only: bool) -> sqlite3.Connection:
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
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        db.execute("PRAGMA synchronous = NORMAL")  # with WAL a kill loses nothing, a power cut the last cells
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        with suppress(sqlite3.Error):
            db.close()
        raise
    return db


def prepared(db: sqlite3.Connection, path: Path, read_only: bool) -> int:
    """The schema of the store ``db``, the file ``path``; of one that is written, the current one.

    A new file that is written gets its tables. Raises ``BadInput`` for a file that is no store of a known schema.
    """
    if not read_only:
        db.execute("BEGIN IMMEDIATE")  # a file that cannot be written fails now, not after the first cell
        db.rollback()
    version = check_schema(db, path)
    if version is None and read_only:  # the process that created the file has not created the tables yet
        raise BadInput(f"{path} is empty: nothing is stored there yet")
    if version is None:
        db.execute("PRAGMA journal_mode = WAL")
        create_tables(db)
    elif version == SCHEMA or read_only:
        return version
    else:
        migrate(db, path, version)
    return SCHEMA


def create_tables(db: sqlite3.Connection) -> None:
    """Create the tables of a new store."""
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
    unique = ", ".join(f'"{name}"' for name in UNIQUE)
    with db:
        db.execute("BEGIN IMMEDIATE")  # tables and version together, or none of them
        db.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        db.execute(f'CREATE TABLE "rows" ({columns}, UNIQUE ({unique}))')
        db.execute('CREATE INDEX "cells" ON "rows" ("digest", "status", "time_utc")')
        index_old_cells(db)
        db.execute("CREATE TABLE runs (run_id TEXT PRIMARY KEY, provenance TEXT NOT NULL)")
        db.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA),))


def index_old_cells(db: sqlite3.Connection) -> None:
    """An index of the rows before ``KEYED``: most stores have none, and need not be searched for them."""
    db.execute(f'CREATE INDEX IF NOT EXISTS "old" ON "rows" ("digest") WHERE {BEFORE_KEYS}')


def backup_path(path: Path, version: int) -> Path:
    """Where the store ``path`` of schema ``version`` is copied before its migration: a name that no file has, with a
    number where another backup of this schema is there."""
    numbers = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    names = (path.with_name(f"{path.name}.schema-{version}{number}.bak") for number in numbers)
    return next(one for one in names if not os.path.lexists(one))


def migrate(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Bring the store ``db``, the file ``path``, from schema ``version`` to the current one, after a backup.

    New columns are null in older rows. One transaction makes all changes or none.
    """
    with closing(sqlite3.connect(backup_path(path, version))) as backup:
        db.backup(backup)
    with db:
        db.execute("BEGIN IMMEDIATE")
        for newer in range(version + 1, SCHEMA + 1):
            for name in ADDED[newer]:
                db.execute(f'ALTER TABLE "rows" ADD COLUMN "{name}" {COLUMNS[name][0]}')
        index_old_cells(db)
        db.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (str(SCHEMA),))

"""Migration of stores to the current schema. The older file stays next to the store as a backup."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from highway_bench.results.schema import COLUMNS, SCHEMA

ADDED: Mapping[int, tuple[str, ...]] = {2: ("paired",), 3: ("start",), 4: ("protocol",), 5: ("source", "old_digest")}
"""The columns that each schema added to the one before."""


def columns_of(version: int) -> set[str]:
    """The columns of a store of schema ``version``."""
    return set(COLUMNS) - {name for newer, names in ADDED.items() if newer > version for name in names}


def orders() -> list[list[str]]:
    """The orders that a store's columns may have: a migration from each schema appends those that it adds."""
    found = []
    for version in range(SCHEMA, 0, -1):
        first = [name for name in COLUMNS if name in columns_of(version)]
        later = [name for newer in range(version + 1, SCHEMA + 1) for name in ADDED[newer]]
        found.append([*first, *later])
    return found


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
        db.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (str(SCHEMA),))

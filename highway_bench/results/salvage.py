"""Salvage: what can be read of a damaged store, as a new store. The damaged file is only read.

Rows are read in the order of their numbers; from one that cannot be read, the next number that can is looked for. The
rows of a cell have successive numbers, so a cell next to an unreadable number may lack rows. Such a cell is left out
whole: it would pass for a complete one, and the next run measures it again.

SQLite's own ``.recover`` needs a build with ``SQLITE_ENABLE_DBPAGE_VTAB``, which neither Python's nor Debian's is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput
from highway_bench.results.integrity import conditions, is_record
from highway_bench.results.schema import COLUMNS, Row
from highway_bench.results.store import Store

PAGE = 4096  # bytes of SQLite's pages
GIVE_UP = 2**18  # unreadable numbers in a row, after which none follows
DIGEST = re.compile("[0-9a-f]{32}")


@dataclass
class Salvaged:
    """What a salvage read: ``cells``, ``rows`` and ``runs`` that are in the new store; ``left_out``, the digests of
    cells of which rows are or may be missing; the numbers of ``lost_rows`` and ``lost_runs``."""

    cells: int = 0
    rows: int = 0
    runs: int = 0
    left_out: set[str] = field(default_factory=set)
    lost_rows: int = 0
    lost_runs: int = 0


def salvage(damaged: str | os.PathLike[str], into: str | os.PathLike[str]) -> Salvaged:
    """Write what can be read of the store ``damaged`` into the new store ``into``.

    Raises ``BadInput`` if there is no such file, if ``into`` exists, or if no cell can be read.
    """
    source, target = Path(damaged), Path(into)
    if not os.path.isfile(source):
        raise BadInput(f"no store at {source}")
    if os.path.lexists(target):
        raise BadInput(f"{target} exists: name a new file")
    done = Salvaged()
    try:
        with _opened(source) as db:
            cells = _whole_cells(_rows(db, done), done.left_out)
            first = next(cells, None)
            if first is None:
                raise BadInput(f"{source}: no cell can be read")
            with Store(target) as store:
                whole = set()
                for rows in chain([first], cells):
                    store.put(rows[0]["digest"], rows)
                    whole.add(rows[0]["digest"])
                    done.rows += len(rows)
                done.cells = len(whole)
                done.left_out.update(_indexed(db) - whole)
                for values in _read(db, "runs", "run_id, provenance"):
                    if values is None or not isinstance(values[0], str) or not is_record(values[1]):
                        done.lost_runs += 1
                    else:
                        store.add_run(values[0], json.loads(values[1]))
                        done.runs += 1
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{source}: nothing can be read: {error}") from error
    return done


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads ``path``; if its first page is damaged, a copy that has the first page of a new store.

    That page says where the tables begin. It does not fit a store that was migrated.
    """
    with ExitStack() as opened:
        db = opened.enter_context(closing(_connected(path)))
        try:
            db.execute('SELECT "digest", "metric", "axis", "status" FROM "rows" LIMIT 0')
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise BadInput(f"{path} is a database, but no highway_bench store") from error
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            Store(folder / "new.sqlite").close()
            page = bytearray((folder / "new.sqlite").read_bytes()[:PAGE])
            page[92:96] = bytes(4)  # the number of pages in the header is void: the file's size counts
            shutil.copyfile(path, folder / "copy.sqlite")
            with (folder / "copy.sqlite").open("r+b") as out:
                out.write(page)
            db = opened.enter_context(closing(_connected(folder / "copy.sqlite")))
        yield db


def _connected(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    db.execute("PRAGMA writable_schema = ON")  # so that a truncated file is read as far as it goes
    db.execute("PRAGMA cell_size_check = ON")
    return db


def _indexed(db: sqlite3.Connection) -> set[str]:
    """The digests in the index, as far as it can be read: those of cells whose rows cannot, too."""
    found = set()
    with suppress(sqlite3.DatabaseError):
        for (digest,) in db.execute('SELECT DISTINCT "digest" FROM "rows" INDEXED BY "cells"'):
            if isinstance(digest, str) and DIGEST.fullmatch(digest):
                found.add(digest)
    return found


def _whole_cells(rows: Iterable[Row | None], left_out: set[str]) -> Iterator[list[Row]]:
    """The rows of each cell that has no unreadable row (``None``) next to its own; the others' digests are
    ``left_out``."""
    by_digest = groupby(rows, lambda row: None if row is None else str(row["digest"]))
    groups = ((digest, list(group)) for digest, group in by_digest)
    before: str | None = ""
    for (digest, group), (after, _) in pairwise(chain(groups, [("", [])])):
        if digest is not None and None in (before, after):
            left_out.add(digest)
        elif digest is not None:
            yield [row for row in group if row is not None]
        before = digest


def _rows(db: sqlite3.Connection, done: Salvaged) -> Iterator[Row | None]:
    """The rows of ``db``; ``None`` for what cannot be read, and for a row with values that no run writes."""
    present = {name for _, name, *_ in db.execute('PRAGMA table_info("rows")')}
    columns = [name for name in COLUMNS if name in present]
    wrong = " OR ".join(conditions(columns).values())
    for values in _read(db, "rows", ", ".join([*(f'"{name}"' for name in columns), wrong])):
        if values is None or values[-1] or not DIGEST.fullmatch(values[columns.index("digest")]):
            done.lost_rows += 1
            yield None
        else:
            yield dict.fromkeys(COLUMNS) | dict(zip(columns, values[:-1], strict=True))


def _read(db: sqlite3.Connection, table: str, wanted: str) -> Iterator[tuple[Any, ...] | None]:
    """What is ``wanted`` (in SQL) of the rows of ``table``, in the order of their numbers; ``None`` for each number
    that cannot be read, and one where nothing after a row can be."""
    rest = f'rowid FROM "{table}" NOT INDEXED WHERE rowid >= ? ORDER BY rowid'
    number = lost = 0
    while lost < GIVE_UP:
        with suppress(sqlite3.DatabaseError, OverflowError):  # a number beyond the largest has no row
            db.execute(f"SELECT {rest} LIMIT 1", (number + lost,)).fetchone()  # fails soon where nothing can be read
            for *values, found in db.execute(f"SELECT {wanted}, {rest}", (number + lost,)):
                yield from [None] * lost
                yield tuple(values)
                number, lost = found + 1, 0
            yield from [None] * lost
            return
        lost += 1
    yield None

"""Salvage: what can be read of a damaged store, as a new store. The damaged file is only read.

Rows are read by number, in chunks; a chunk that cannot be read is halved until the unreadable rows are left. The rows
of a cell have successive numbers, so a cell next to an unreadable number may lack rows. Such a cell is left out whole:
it would pass for a complete one, and the next run measures it again.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput
from highway_bench.results.integrity import conditions, is_record, orders
from highway_bench.results.schema import COLUMNS, Row
from highway_bench.results.store import Store, create_tables, quoted

CHUNK = 4096  # rows read at once
PAGE = 4096  # bytes of SQLite's pages
MOST = 2**63 - 1  # the largest number of a row
PATIENCE = 16  # chunks without a readable row after which there is none, where the last number is unknown
INDICES = {"rows": "cells", "runs": "sqlite_autoindex_runs_1"}
DIGEST = re.compile("[0-9a-f]{32}")

RawRow = tuple[Any, ...]


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
            present = {name for _, name, *_ in db.execute('PRAGMA table_info("rows")')}
            columns = [name for name in COLUMNS if name in present]
            wrong = " OR ".join(conditions(columns).values())
            found = _read(db, "rows", [*map(quoted, columns), wrong])
            cells = _whole_cells(_valid(found, columns, done), done.left_out)
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
                for values in _read(db, "runs", ["run_id", "provenance"]):
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
    """A connection that reads ``path``; if the first page is damaged, a copy that has one which fits."""
    with ExitStack() as opened:
        db = opened.enter_context(closing(_connected(path)))
        try:
            db.execute('SELECT "digest", "metric", "axis", "status" FROM "rows" LIMIT 0')
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise BadInput(f"{path} is a database, but no highway_bench store") from error
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            db = opened.enter_context(closing(_connected(_with_first_page(path, folder))))
        yield db


def _with_first_page(path: Path, folder: Path) -> Path:
    """A copy of ``path`` in ``folder`` with the first page that fits; where none does, that of a new store."""
    copy = folder / "copy.sqlite"
    shutil.copyfile(path, copy)
    pages = list(_first_pages(folder))
    for page in [*pages, pages[0]]:
        with copy.open("r+b") as out:
            out.write(page)
        with closing(_connected(copy)) as db:
            if fits(db):
                break
    return copy


def _first_pages(folder: Path) -> Iterator[bytes]:
    """The first pages that a store may have: SQLite's header, the tables with the order of their columns, and where
    they begin, which ``VACUUM`` changes."""
    for number, (order, is_compact) in enumerate(itertools.product(orders(), (False, True))):
        path = folder / f"{number}.sqlite"
        with closing(sqlite3.connect(path)) as db:
            create_tables(db, order)
            if is_compact:
                db.execute("VACUUM")
        page = bytearray(path.read_bytes()[:PAGE])
        page[92:96] = bytes(4)  # the number of pages in the header is void: the file's size counts
        yield bytes(page)


def fits(db: sqlite3.Connection) -> bool:
    """Whether the first readable row and record are such as runs write, by the tables that ``db`` names.

    Where a table begins elsewhere, none of its rows can be read, and one chunk shows it."""
    row, run = (
        next((values for values in _read(db, table, wanted, patience=1) if values is not None), None)
        for table, wanted in (("rows", ['"digest"', '"run_id"']), ("runs", ["run_id", "provenance"]))
    )
    return bool(
        row and isinstance(row[0], str) and DIGEST.fullmatch(row[0])
        and run and isinstance(run[0], str) and is_record(run[1])
    )  # fmt: skip


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
    cell: list[Row] = []
    broken = gap = False  # an unreadable row is next to the cell, and directly before the next row
    for row in rows:
        if row is None:
            broken = gap = True
            continue
        if cell and row["digest"] != cell[0]["digest"]:
            if broken:
                left_out.add(cell[0]["digest"])
            else:
                yield cell
            cell = []
        broken = broken if cell else gap
        gap = False
        cell.append(row)
    if cell and broken:
        left_out.add(cell[0]["digest"])
    elif cell:
        yield cell


def _valid(found: Iterable[RawRow | None], columns: list[str], done: Salvaged) -> Iterator[Row | None]:
    """``found`` as rows, without the last value, which says that the row has values that no run writes; ``None`` for
    such rows, and for what cannot be read."""
    for values in found:
        if values is None or values[-1] or not DIGEST.fullmatch(values[columns.index("digest")]):
            done.lost_rows += 1
            yield None
        else:
            yield dict.fromkeys(COLUMNS) | dict(zip(columns, values[:-1], strict=True))


def _read(db: sqlite3.Connection, table: str, wanted: list[str], patience: int = PATIENCE) -> Iterator[RawRow | None]:
    """What is ``wanted`` (in SQL) of the rows of ``table`` by their numbers; ``None`` for each number that cannot be
    read.

    Numbers that no row has are passed over at once, however many they are. Where the last number is unknown, reading
    ends after ``patience`` chunks without a readable row, and one ``None`` follows the last readable row.
    """
    query = f'SELECT {", ".join(wanted)} FROM "{table}" WHERE rowid BETWEEN ? AND ? ORDER BY rowid'
    last = _last_number(db, table)
    first: int | None = 0
    chunks = unread = 0
    while first is not None and (first <= last if last is not None else chunks < patience):
        chunks += 1
        is_empty = True
        end = min(first + CHUNK - 1, MOST if last is None else last)
        for values in _read_range(db, query, first, end):
            if values is None:
                unread += 1
            else:
                yield from [None] * unread
                yield values
                unread = chunks = 0
                is_empty = False
        first = _number_after(db, table, end) if is_empty else end + 1
    yield from [None] * (min(unread, 1) if last is None else unread)


def _read_range(db: sqlite3.Connection, query: str, first: int, last: int) -> Iterator[RawRow | None]:
    try:
        yield from db.execute(query, (first, last)).fetchall()
    except sqlite3.DatabaseError:
        if first == last:
            yield None
            return
        middle = (first + last) // 2
        yield from _read_range(db, query, first, middle)
        yield from _read_range(db, query, middle + 1, last)


def _last_number(db: sqlite3.Connection, table: str) -> int | None:
    """The number of the last row, from the table or from an index of it; ``None`` where neither can be read."""
    for source in _sources(table):
        with suppress(sqlite3.DatabaseError):
            return int(db.execute(f"SELECT max(rowid) FROM {source}").fetchone()[0] or 0)
    return None


def _number_after(db: sqlite3.Connection, table: str, number: int) -> int | None:
    """The number of the first row after ``number``, or ``None`` if there is none, from the table or from an index of
    it; the next number where neither can be read."""
    for source in _sources(table):
        with suppress(sqlite3.DatabaseError):
            found: int | None = db.execute(f"SELECT min(rowid) FROM {source} WHERE rowid > ?", (number,)).fetchone()[0]
            return found
    return number + 1


def _sources(table: str) -> tuple[str, str]:
    """In SQL, ``table`` itself and its index, which has the numbers of its rows too."""
    return f'"{table}" NOT INDEXED', f'"{table}" INDEXED BY "{INDICES[table]}"'

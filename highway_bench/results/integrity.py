"""Integrity: whether a file is a store of a known schema, and undamaged. Nothing here writes.

Opening a store reads a small file whole. Of a large one it reads the first and the last rows, as a million rows take
seconds to read: SQLite itself refuses a truncated file, and ``problems`` reads everything.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from highway_bench.errors import BadInput
from highway_bench.results.migration import columns_of
from highway_bench.results.schema import JSON_TEXTS, REALS, SCHEMA, Status

TABLES = frozenset({"meta", "rows", "runs"})
SMALL = 64 * 2**20  # bytes of a file that is read whole when it is opened, which takes a tenth of a second


def check_schema(db: sqlite3.Connection, path: Path) -> int | None:
    """The schema of the store ``db``, the file ``path``; ``None`` for a file without tables. Raises ``BadInput``."""
    objects = {(kind, name) for kind, name in db.execute("SELECT type, name FROM sqlite_schema")}
    tables = {name for kind, name in objects if kind == "table"}
    if not tables:
        return None
    if not tables >= TABLES:
        raise BadInput(f"{path} is a database, but no highway_bench store")
    if odd := sorted(f"{kind} {name}" for kind, name in objects if kind in {"trigger", "view"}):
        raise BadInput(f"{path} has the {odd[0]}, which no store has: it would run when the store is used")
    entry = db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    version = int(entry[0]) if entry and str(entry[0]).isdecimal() else None
    if version is None:
        raise BadInput(f"{path} does not say which schema it has; it is damaged or no highway_bench store")
    if version < 1:
        raise BadInput(f"{path} has schema {version}, which never existed; it is damaged")
    if version > SCHEMA:
        raise BadInput(f"{path} has schema {version}, this version reads up to {SCHEMA}: update highway_bench")
    if {name for _, name, *_ in db.execute('PRAGMA table_info("rows")')} != columns_of(version):
        raise BadInput(f"{path}: the columns of its rows are not those of schema {version}; it is damaged")
    return version


def check_pages(db: sqlite3.Connection) -> None:
    """Raise ``sqlite3.DatabaseError`` for a damaged file: any damage of a small one, and that of the first and last
    rows of a large one."""
    pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if pages * size <= SMALL:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(f"database disk image is malformed: {verdict.splitlines()[-1]}")
        return
    for order in ("ASC", "DESC"):
        for table in ("rows", "runs"):
            db.execute(f'SELECT * FROM "{table}" ORDER BY rowid {order} LIMIT 1').fetchall()
        db.execute(f'SELECT "digest" FROM "rows" ORDER BY "digest" {order} LIMIT 1').fetchall()


def problems(db: sqlite3.Connection, columns: Collection[str]) -> Iterator[str]:
    """What is wrong in the whole store ``db`` of these ``columns``, a line each: pages, indices, and values that no run
    writes."""
    try:
        damage = [line for (line,) in db.execute("PRAGMA integrity_check(20)") if line != "ok"]
    except sqlite3.DatabaseError as error:
        damage = [str(error)]
    if damage:
        yield from (line.splitlines()[-1] for line in damage)
        return
    known = ", ".join(f"'{status}'" for status in Status)
    wrong = {
        "have an unknown status": f'"status" IS NULL OR "status" NOT IN ({known})',
        "lack their digest or metric": '"digest" IS NULL OR "metric" IS NULL',
        **{
            f"have a {name} that is no JSON": f'"{name}" IS NOT NULL AND NOT json_valid("{name}")'
            for name in JSON_TEXTS
            if name in columns
        },
        **{f"have a {name} that is no number": f"""typeof("{name}") IN ('text', 'blob')""" for name in REALS},
    }
    for what, where in wrong.items():
        (count,) = db.execute(f'SELECT count(*) FROM "rows" WHERE {where}').fetchone()
        if count:
            yield f"{count} rows {what}"
    for run_id, text in db.execute("SELECT run_id, provenance FROM runs"):
        if not is_object(text):
            yield f"the record of run {run_id} is no JSON object"


def is_object(text: object) -> bool:
    """Whether ``text`` is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False

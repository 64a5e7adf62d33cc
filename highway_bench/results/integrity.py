"""Integrity: whether a file is a store of a known schema, undamaged, with values that runs write. Nothing here writes.

Opening a store reads a small file whole. Of a large one it reads the first and the last rows, as a million rows take
seconds to read: SQLite itself refuses a truncated file, and ``problems`` reads everything.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput
from highway_bench.results.schema import COLUMNS, DESCRIBED, JSON_KINDS, SCHEMA, UNIQUE, Status

TABLES = frozenset({"meta", "rows", "runs"})
MOST = repr(sys.float_info.max)
Shape = type | tuple[type, ...] | list[Any] | Mapping[str, Any]
"""What a value may be: of a type, a list of one shape, or a mapping with shapes by name, where ``""`` is any other."""
PROGRESS: Mapping[str, Shape] = {
    "run_id": str,
    "process": int,
    "updated": str,
    "cells": int,
    "counts": {"": int},
    "left": (int, float),
    "running": [str],
}
RECORD: Mapping[str, Shape] = {
    "commit": (str, type(None)),
    "torch": str,
    "python": str,
    "os": str,
    "cores": int,
    "command": [str],
    "plugins": [str],
    "started": str,
    "finished": (str, type(None)),
    "machines": {"": str},
    "measured": int,
    "digests": [str],
    **{part: {"": {"metrics": {}, "starts": {}}} for part in DESCRIBED},
}
"""Older records lack some of these."""
SMALL = 64 * 2**20  # bytes of a file that is read whole when it is opened
ADDED: Mapping[int, tuple[str, ...]] = {2: ("paired",), 3: ("start",), 4: ("protocol",), 5: ("source", "old_digest")}
"""The columns that each schema added to the one before."""


def columns_of(version: int) -> set[str]:
    """The columns of a store of schema ``version``."""
    return set(COLUMNS) - {name for newer, names in ADDED.items() if newer > version for name in names}


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
    check_columns([name for _, name, *_ in db.execute('PRAGMA table_info("rows")')], version, path)
    return version


def check_columns(names: Sequence[str], version: int, path: Path) -> None:
    """Raise ``BadInput`` where ``names`` are not the columns of this schema, or this version does not know it."""
    if version < 1:
        raise BadInput(f"{path} has schema {version}, which never existed; it is damaged")
    if version > SCHEMA:
        raise BadInput(f"{path} has schema {version}, this version reads up to {SCHEMA}: update highway_bench")
    if sorted(names) != sorted(columns_of(version)):
        raise BadInput(f"{path}: the columns of its rows are not those of schema {version}; it is damaged")


def check_contents(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Raise ``sqlite3.DatabaseError`` for a damaged file, and ``BadInput`` for values that no run writes.

    Any damage and any value of a small file counts; of a large one, only damage of the first and last rows.
    """
    pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if pages * size <= SMALL:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(f"database disk image is malformed: {verdict.splitlines()[-1]}")
        for problem in wrong_values(db, columns_of(version)):
            raise BadInput(
                f"{path}: {problem}; it is damaged: highway-bench results check --store {path} lists every problem, "
                "and writes what is sound with --salvage NEW"
            )
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
    yield from wrong_values(db, columns)


def wrong_values(db: sqlite3.Connection, columns: Collection[str]) -> Iterator[str]:
    """The values of the store ``db`` that no run writes, a line for each kind of them."""
    rules = conditions(columns)
    counts = db.execute(f'SELECT {", ".join(f"sum({rule})" for rule in rules.values())} FROM "rows"').fetchone()
    yield from (f"{count} rows {what}" for what, count in zip(rules, counts, strict=True) if count)
    for run_id, text in db.execute("SELECT run_id, provenance FROM runs"):
        if not is_record(text):
            yield f"the record of run {run_id} is none that a run writes"
    for (text,) in db.execute("SELECT value FROM meta WHERE name = 'progress'"):
        if not is_progress(text):
            yield "the progress of the last run is none that a run writes"


def conditions(columns: Collection[str]) -> Mapping[str, str]:
    """By what is wrong with a row: the condition in SQL under which it is. ``columns`` are those of the store."""
    statuses = ", ".join(f"'{status}'" for status in Status)
    rules = {
        "have an unknown status": f'"status" IS NULL OR "status" NOT IN ({statuses})',
    } | {f"lack their {name}": f'"{name}" IS NULL' for name in UNIQUE}
    for name, (kind, _) in COLUMNS.items():
        if name not in columns:
            continue
        if kind == "REAL":
            rules[f"have a {name} that is no number"] = f"""typeof("{name}") IN ('text', 'blob')"""
            rules[f"have a {name} that is not finite"] = f'typeof("{name}") = \'real\' AND abs("{name}") > {MOST}'
        elif kind == "INTEGER":
            rules[f"have a {name} that is no whole number"] = f"""typeof("{name}") NOT IN ('integer', 'null')"""
        else:
            rules[f"have a {name} that is no text"] = f"""typeof("{name}") NOT IN ('text', 'null')"""
        if name in JSON_KINDS:
            json_kind = JSON_KINDS[name]
            rules[f"have a {name} that is no JSON {json_kind}"] = (
                f"""CASE WHEN json_valid("{name}") THEN json_type("{name}") <> '{json_kind}' """
                f'ELSE "{name}" IS NOT NULL END'
            )
    return {what: f"({condition})" for what, condition in rules.items()}


def problem_of_column(name: str, values: Iterable[Any]) -> str | None:
    """What is wrong with ``values`` of the column ``name``, of which each is needed once; ``None`` if nothing is."""
    rules = {what: rule for what, rule in conditions([name]).items() if f'"{name}"' in rule}
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f'CREATE TABLE "rows" ("{name}" {COLUMNS[name][0]})')
        try:
            db.executemany('INSERT INTO "rows" VALUES (?)', ((value,) for value in values))
        except (sqlite3.Error, OverflowError) as error:
            return f"a row has a value of no known kind: {error}"
        wrong = (what for what, rule in rules.items() if db.execute(f'SELECT 1 FROM "rows" WHERE {rule}').fetchone())
        return next((f"rows {what}" for what in wrong), None)


def is_record(text: object) -> bool:
    """Whether ``text`` is the record of a run."""
    return has_shape(json_object(text), RECORD)


def is_progress(text: object) -> bool:
    """Whether ``text`` says how far a run is."""
    progress = json_object(text)
    return progress is not None and progress.keys() >= PROGRESS.keys() and has_shape(progress, PROGRESS)


def has_shape(value: object, shape: Shape) -> bool:
    """Whether ``value`` has this shape; a truth value is no number. A mapping may lack names, and have others."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(has_shape(one, shape[0]) for one in value)
    if isinstance(shape, Mapping):
        others = shape.get("", object)
        return isinstance(value, dict) and all(has_shape(one, shape.get(name, others)) for name, one in value.items())
    return shape is object or (isinstance(value, shape) and not isinstance(value, bool))


def json_object(text: object) -> dict[str, Any] | None:
    """The JSON object in ``text``; ``None`` where it has none."""
    try:
        value = json.loads(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

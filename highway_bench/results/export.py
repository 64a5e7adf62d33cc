"""Export a store to files that other programs read, and load exported files, or other stores, into a store."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TextIO

from highway_bench.errors import BadInput, NothingMeasured, writing
from highway_bench.results.parquet import ParquetRows, parquet_files, runs_in, write_parquet
from highway_bench.results.schema import COLUMNS, JSON_KINDS, Row
from highway_bench.results.store import MergeCounts, Store

PARQUET: Final = ".parquet"


def write_csv(rows: Iterable[Row], out: TextIO) -> None:
    """``rows`` as CSV with a header; nulls are empty, the columns of ``JSON_KINDS`` stay JSON text."""
    writer = csv.DictWriter(out, fieldnames=list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def write_jsonl(rows: Iterable[Row], out: TextIO) -> None:
    """``rows`` as JSON lines; the columns of ``JSON_KINDS`` become objects and lists."""
    for row in rows:
        out.write(json.dumps(parsed(row), ensure_ascii=False, allow_nan=False) + "\n")


def parsed(row: Row) -> Row:
    """``row``, or a part of its columns, with those of ``JSON_KINDS`` as objects and lists."""
    return row | {name: json.loads(row[name]) for name in JSON_KINDS if row.get(name) is not None}


WRITERS = {".csv": write_csv, ".jsonl": write_jsonl}


def export(store: Store, path: str | os.PathLike[str]) -> int:
    """Write all rows of ``store`` to ``path``, as ``.csv``, ``.jsonl`` or ``.parquet``, and return their number.

    A Parquet file also has the records of the runs, and ``import_rows`` reads it. A kill leaves the whole file or the
    one before. Raises ``NothingMeasured`` for a store without rows, and ``BadInput`` for another suffix or a path that
    cannot be written.
    """
    target = Path(path)
    if target.suffix not in (*WRITERS, PARQUET):
        raise BadInput(f"cannot export to {target}: its name must end in {', '.join(WRITERS)} or {PARQUET}")
    if not (rows := store.rows()):
        raise NothingMeasured(f"{store.path} has no rows")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == PARQUET:
            write_parquet(rows, store.runs(), target)
        else:
            part = target.with_name(f"{target.name}.part")
            with part.open("w", encoding="utf-8", newline="") as out:
                WRITERS[target.suffix](rows, out)
            part.replace(target)
    return len(rows)


def export_runs(store: Store, folder: str | os.PathLike[str]) -> list[Path]:
    """Write one Parquet file, named by its id, for each run of ``store`` that no file in ``folder`` has; return the new
    files.

    An existing file is never changed; it may have several runs. A run without rows has no file: it measured nothing, or
    other runs replaced its rows. Raises ``BadInput`` for a folder that cannot be written, and for a run whose id is no
    name of a file.
    """
    target, written = Path(folder), []
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        known = {run_id for path in target.rglob(f"*{PARQUET}") for run_id in runs_in(path)}
        for run_id, record in store.runs().items():
            if Path(run_id).name != run_id:
                raise BadInput(f"{store.path} has a run with the id {run_id!r}, which cannot name a file")
            path = target / f"{run_id}{PARQUET}"
            if run_id not in known and not path.exists() and (rows := store.rows(run_id=run_id)):
                write_parquet(rows, {run_id: record}, path)
                written.append(path)
    return written


def import_rows(into: str | os.PathLike[str], *sources: str | os.PathLike[str]) -> int:
    """Add the cells and runs in the Parquet files ``sources``, or in folders of them, to the store ``into``, and return
    the number of changed cells.

    Rows and digests are those that were exported, so a run into this store does not measure them again. Of a cell that
    is in several places, the newest result is stored, and a failure never replaces it. ``into`` is created if it is
    missing. Raises ``BadInput``, before anything is written, for a file that cannot be read.
    """
    files = parquet_files(sources)
    if not files:
        raise BadInput("nothing to import: name at least one Parquet file, or a folder of them")
    exported = [ParquetRows(path) for path in files]
    with Store(into) as target:
        return sum(taken.changed for taken in target.take(*exported))


def compact(folder: str | os.PathLike[str]) -> Path:
    """Join the Parquet files of ``folder`` into one, which is named after the day of the newest run, and return it.

    It has the newest result of every cell, and all runs. The others are removed once it is written.
    """
    files = parquet_files([folder])
    with TemporaryDirectory() as scratch:
        import_rows(joined := Path(scratch) / "joined.sqlite", *files)
        with Store(joined, read_only=True) as store:
            newest = max(str(run.get("started") or "") for run in store.runs().values())
            target = Path(folder) / f"until-{newest[:10]}{PARQUET}"
            export(store, target)
    for path in files:
        if path != target:
            path.unlink()
    return target


def merge(into: str | os.PathLike[str], *others: str | os.PathLike[str]) -> list[MergeCounts]:
    """Add the cells and runs of the stores ``others`` to the store ``into``, and return what was taken of each.

    Of a cell that several stores have, the newest result is stored, and a failure never replaces it. ``into`` is
    created if it is missing; the others are only read. Raises ``BadInput``, before anything is written, for a store
    that is missing, damaged, or of a newer schema.
    """
    if not others:
        raise BadInput("nothing to merge: name at least one other store")
    if Path(into).resolve() in {Path(other).resolve() for other in others}:
        raise BadInput(f"{into} cannot be merged into itself")
    for other in others:
        Store(other, read_only=True).close()
    taken = []
    with Store(into) as target:
        for other in others:
            with Store(other, read_only=True) as source:
                taken += target.take(source)
    return taken

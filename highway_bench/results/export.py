"""Export a store to files that other programs read, and load exported files, or other stores, into a store."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TextIO

from highway_bench.errors import BadInput, NothingMeasured, writing
from highway_bench.results.parquet import ParquetRows, parquet_files, write_parquet
from highway_bench.results.schema import COLUMNS, JSON_KINDS, Row
from highway_bench.results.store import MergeCounts, Rows, Store

PARQUET: Final = ".parquet"
MAGIC: Final = b"PAR1"


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
        names = f"{', '.join(WRITERS)} or {PARQUET}"
        raise BadInput(f"cannot export to {target}: name a file that ends in {names}, or a folder that exists")
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


def import_rows(into: str | os.PathLike[str], *sources: str | os.PathLike[str]) -> dict[Path, MergeCounts]:
    """Add the cells and runs of ``sources`` to the store ``into``, and return what was taken of each file.

    A source is a store, a Parquet file, or a folder of Parquet files. Rows and digests are stored as they are in the
    source, so a run into this store does not measure the cells again. Of a cell that is in several places, the newest
    result is stored, and a failure never replaces it. ``into`` is created if it is missing. Raises ``BadInput``, before
    anything is written, for a file that is missing, damaged, or of a newer schema.
    """
    if not sources:
        raise BadInput("nothing to import: name at least one store, Parquet file, or folder of Parquet files")
    files = {path.resolve(): path for source in sources for path in _files_in(Path(source))}
    if Path(into).resolve() in files:
        raise BadInput(f"{into} cannot be imported into itself")
    parquet = [path for path in files.values() if _is_parquet(path)]
    stores = [path for path in files.values() if path not in parquet]
    exported = list(map(ParquetRows, parquet))
    for path in stores:
        Store(path, read_only=True).close()
    with Store(into) as target:
        taken = target.take(chain(exported, _opened(stores)))
    return dict(zip((*parquet, *stores), taken, strict=True))


def _files_in(source: Path) -> list[Path]:
    return parquet_files([source]) if os.path.isdir(source) else [source]


def _is_parquet(path: Path) -> bool:
    """By its first bytes; of a file that cannot be read, by its name."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC or path.suffix == PARQUET
    except OSError:
        return path.suffix == PARQUET


def _opened(stores: Iterable[Path]) -> Iterator[Store]:
    """The stores, one open at a time."""
    for path in stores:
        with Store(path, read_only=True) as store:
            yield store


def join_into(folder: str | os.PathLike[str], *others: Rows) -> Path:
    """Join the Parquet files in ``folder``, and the rows of ``others``, into one file there, and return it.

    It is named after the day of the newest row or run, and has the newest result of every cell and all runs. The other
    files are removed once it is written; those of folders in it stay. Raises ``NothingMeasured`` where there is no row.
    """
    files = sorted(Path(folder).glob(f"*{PARQUET}"))
    with TemporaryDirectory() as scratch, Store(Path(scratch) / "joined.sqlite") as joined:
        joined.take([*map(ParquetRows, files), *others])
        if not joined.count_cells():
            raise NothingMeasured(f"there is no row for {folder}")
        target = Path(folder) / f"until-{(joined.last_time() or 'now')[:10]}{PARQUET}"
        export(joined, target)
    with writing(target):
        for path in files:
            if path != target:
                path.unlink()
    return target

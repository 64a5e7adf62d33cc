"""Rows by columns: in a Parquet file, with the records of their runs, and as frames for pandas.

A Parquet file has all that a store needs; nothing is rounded or left out. For the frame of a store, most of the time
goes into values that SQLite hands to Python one by one. So the columns that the rows of an attempt share are fetched
from the first of them alone, and text becomes codes of its distinct values.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highway_bench.errors import BadInput
from highway_bench.results.integrity import check_columns, is_record, json_object, problem_of_column
from highway_bench.results.schema import COLUMNS, LATER_ATTEMPT, OWN, SCHEMA, Row

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SCHEMA_KEY: Final = b"highway_bench.schema"
RUNS_KEY: Final = b"highway_bench.runs"
"""In the file's metadata: the schema of its rows, and the records of its runs by id, as compressed JSON."""

RANDOM: Final = ("value", "low", "high")
"""Columns whose numbers seldom repeat; split by byte, they compress better than as a dictionary."""

FOLDER: Final = Path(__file__).with_name("committed")
TABLE, FINALS, PLAIN = "answers.parquet", "finals.parquet", "plain.parquet"
"""The wide table of the committed rows, their final trainings, a row for each seed, and connections as plain torch."""

SHARED: Final = tuple(name for name in COLUMNS if name not in OWN)
ATTEMPT: Final = f"""("digest" || ("axis" IS '{LATER_ATTEMPT}'))"""
"""In SQL: what differs between any two attempts at cells."""
AT_ONCE: Final = 2_000  # rows that are objects of Python at a time: few enough to stay in the caches


def write_parquet(rows: Sequence[Row], runs: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Write ``rows`` and the records of their ``runs`` to ``path``. A kill leaves the whole file or none."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in _kinds(pa.string()).items()})
    part = path.with_name(f"{path.name}.part")
    with parquet.ParquetWriter(
        part,
        table.schema,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in COLUMNS if name not in RANDOM],
        use_byte_stream_split=list(RANDOM),
        store_schema=False,  # pyarrow's own copy of the schema and the metadata
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({SCHEMA_KEY: str(SCHEMA), RUNS_KEY: _packed(runs)})
    os.replace(part, path)


class ParquetRows:
    """The rows and runs in the Parquet file ``path``, which ``write_parquet`` wrote, in this version or an older one.

    Raises ``BadInput`` for a file that is missing, damaged, of a newer schema, or no export of this package, and for
    values that no run writes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.path = Path(path)
        try:
            texts = [name for name, (kind, _) in COLUMNS.items() if kind == "TEXT"]
            self._table: pa.Table = parquet.read_table(self.path, read_dictionary=texts).combine_chunks()
            metadata = self._table.schema.metadata or {}
            if SCHEMA_KEY not in metadata or RUNS_KEY not in metadata:
                raise BadInput(f"{self.path} is a Parquet file, but not one that highway_bench exported")
            columns = self._table.column_names
            check_columns(columns, int(metadata[SCHEMA_KEY]), self.path)
            self._runs = _unpacked(metadata[RUNS_KEY])
            problems = (problem_of_column(name, _values(_distinct(self._table[name]))) for name in columns)
            problem = next((one for one in problems if one is not None), None)
        except (OSError, ValueError, zlib.error, pa.ArrowException) as error:
            raise BadInput(f"cannot read {self.path}: {str(error).partition(chr(10))[0]}") from error
        if problem is not None:
            raise BadInput(f"{self.path}: {problem}; it is damaged")

    def times(self) -> dict[str, set[str]]:
        """As ``Store.times``."""
        import pyarrow as pa
        from pyarrow import compute

        digest, axis, time = (self._table[name].cast(pa.string()) for name in ("digest", "axis", "time_utc"))
        later = compute.equal(axis, LATER_ATTEMPT).fill_null(False)
        attempts = pa.table({"digest": digest, "later": later, "time": time}).group_by(["digest", "later"])
        times: dict[str, set[str]] = {}
        for row in attempts.aggregate([("time", "max")]).to_pylist():
            times.setdefault(row["digest"], set()).add(row["time_max"])
        return times

    def runs(self) -> dict[str, dict[str, Any]]:
        """The records of the runs by id."""
        return self._runs

    def values(self, digests: Collection[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of these cells, each as its values in the order of ``COLUMNS``."""
        wanted = set(digests)
        rows = zip(*self._columns.values(), strict=True)
        return compress(rows, map(wanted.__contains__, self._columns["digest"]))

    @cached_property
    def _columns(self) -> dict[str, Sequence[Any]]:
        """By name: the values of each column of the current schema."""
        absent = [None] * self._table.num_rows
        return {name: _values(self._table[name]) if name in self._table.column_names else absent for name in COLUMNS}

    def frame(self) -> pd.DataFrame:
        """The rows as a frame, with the columns of the current schema."""
        from pyarrow import parquet

        frame: pd.DataFrame = parquet.read_table(self.path).to_pandas().reindex(columns=list(COLUMNS))
        return frame


def parquet_files(sources: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The Parquet files that ``sources`` name, and those in the folders among them, at any depth, sorted by path.

    Raises ``BadInput`` for a folder without any.
    """
    files: list[Path] = []
    for source in map(Path, sources):
        inside = sorted(source.rglob("*.parquet")) if os.path.isdir(source) else [source]
        if not inside:
            raise BadInput(f"there is no Parquet file in {source}")
        files += inside
    return files


def known(name: str) -> list[dict[str, Any]]:
    """The rows of the table of this file name."""
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.ParquetFile(FOLDER / name).read().to_pylist()  # read_table imports pandas
    return rows


def packed(names: Sequence[str], cursor: sqlite3.Cursor) -> pa.Table:
    """The rows that ``cursor`` gives, with the columns ``names`` and at last ``ATTEMPT``."""
    import pyarrow as pa

    kinds = _kinds(pa.large_string())
    schema = pa.schema([*((name, kinds[name]) for name in names), ("attempt", pa.large_string())])
    parts = [
        pa.record_batch(list(map(pa.array, zip(*rows, strict=True), schema.types)), schema)
        for rows in iter(lambda: cursor.fetchmany(AT_ONCE), [])
    ]
    return pa.Table.from_batches(parts, schema)


def joined(rows: pa.Table, attempts: pa.Table) -> pd.DataFrame:
    """Every row of ``rows``, which has the columns ``OWN``, with the columns ``SHARED`` of its attempt."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    def encoded(column: pa.ChunkedArray) -> pa.Array:
        """Text as codes in the order of its distinct values, so that codes sort and compare as the text does."""
        if not pa.types.is_large_string(column.type):
            return column.combine_chunks()
        texts = pc.unique(column.drop_null())
        texts = texts.take(pc.array_sort_indices(texts))
        codes = pc.index_in(column, texts).combine_chunks()
        return pa.DictionaryArray.from_arrays(codes, texts, ordered=True)

    of_row = pc.index_in(rows["attempt"], attempts["attempt"]).combine_chunks()
    own = {name: encoded(rows[name]) for name in OWN}
    shared = {name: encoded(attempts[name]).take(of_row) for name in SHARED}
    table = pa.table({name: own[name] if name in own else shared[name] for name in COLUMNS})
    frame: pd.DataFrame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    return frame


def _kinds(text: pa.DataType) -> dict[str, pa.DataType]:
    """By name, the type of each column, where texts are of the type ``text``."""
    import pyarrow as pa

    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": text}
    return {name: kinds[kind] for name, (kind, _) in COLUMNS.items()}


def _packed(runs: Mapping[str, Mapping[str, Any]]) -> bytes:
    text = json.dumps(runs, ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), level=9))  # Parquet does not compress its metadata


def _unpacked(packed: bytes) -> dict[str, dict[str, Any]]:
    """The records of runs; raises ``ValueError``, or ``zlib.error``, for what ``_packed`` did not write."""
    runs = json_object(zlib.decompress(base64.b64decode(packed)))
    if runs is None or not all(is_record(json.dumps(record)) for record in runs.values()):
        raise ValueError("the records of its runs are none that a run writes")
    return runs


def _distinct(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Each value once, except of a column of lists, which no export has."""
    import pyarrow as pa
    from pyarrow import compute

    return column if pa.types.is_nested(column.type) else compute.unique(column)


def _values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column; raises ``ValueError`` for a number that is none."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_floating(column.type) and compute.any(compute.is_nan(column)).as_py():
        raise ValueError("a number that is not finite")
    if pa.types.is_dictionary(column.type):  # a text that repeats is one object
        texts: list[Any] = column.to_pandas().astype(object).where(column.is_valid().to_pandas(), None).tolist()
        return texts
    values: list[Any] = column.to_pylist()
    return values

"""Rows in a Parquet file, with the records of their runs: all that a store needs. Nothing is rounded or left out."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highway_bench.errors import BadInput
from highway_bench.results.integrity import columns_of, is_record, json_object, problem_of_column
from highway_bench.results.schema import COLUMNS, LATER_ATTEMPT, SCHEMA, Row

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SCHEMA_KEY: Final = b"highway_bench.schema"
RUNS_KEY: Final = b"highway_bench.runs"
"""In the file's metadata: the schema of its rows, and the records of its runs by id, as compressed JSON."""

RANDOM: Final = ("value", "low", "high")
"""Columns whose numbers seldom repeat; split by byte, they compress better than as a dictionary."""


def write_parquet(rows: Sequence[Row], runs: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Write ``rows`` and the records of their ``runs`` to ``path``. A kill leaves the whole file or none."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
    table = pa.table({name: pa.array([row[name] for row in rows], kinds[kind]) for name, (kind, _) in COLUMNS.items()})
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
            version = int(metadata[SCHEMA_KEY])
            if version > SCHEMA:
                raise BadInput(
                    f"{self.path} has schema {version}, this version reads up to {SCHEMA}: update highway_bench"
                )
            columns = self._table.column_names
            if set(columns) != columns_of(version) or len(columns) != len(set(columns)):
                raise BadInput(f"{self.path}: the columns of its rows are not those of schema {version}; it is damaged")
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
        frame: pd.DataFrame = self._table.cast(_plain(self._table.schema)).to_pandas().reindex(columns=list(COLUMNS))
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


def runs_in(path: Path) -> set[str]:
    """The ids of the runs in the Parquet file ``path``; none where no export wrote it."""
    from pyarrow import parquet

    metadata = parquet.read_metadata(path).metadata or {}
    return set(_unpacked(metadata[RUNS_KEY])) if RUNS_KEY in metadata else set()


def _packed(runs: Mapping[str, Mapping[str, Any]]) -> bytes:
    text = json.dumps(runs, ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), level=9))  # Parquet does not compress its metadata


def _unpacked(packed: bytes) -> dict[str, dict[str, Any]]:
    """The records of runs; raises ``ValueError``, or ``zlib.error``, for what ``_packed`` did not write."""
    runs = json_object(zlib.decompress(base64.b64decode(packed)))
    if runs is None or not all(is_record(json.dumps(record)) for record in runs.values()):
        raise ValueError("the records of its runs are none that a run writes")
    return runs


def _plain(schema: pa.Schema) -> pa.Schema:
    """``schema`` with text instead of codes of texts."""
    import pyarrow as pa

    kinds = ((one.name, one.type.value_type if pa.types.is_dictionary(one.type) else one.type) for one in schema)
    return pa.schema(list(kinds))


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

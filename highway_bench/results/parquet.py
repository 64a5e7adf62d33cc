"""Rows in a Parquet file, with the records of their runs: all that a store needs. Nothing is rounded or left out."""

from __future__ import annotations

import base64
import itertools
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highway_bench.errors import BadInput
from highway_bench.results.integrity import is_record, json_object, problem_of_rows
from highway_bench.results.migration import columns_of
from highway_bench.results.schema import COLUMNS, SCHEMA, Row

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
            self._table: pa.Table = parquet.ParquetFile(self.path).read()
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
            self.runs = _unpacked(metadata[RUNS_KEY])
            values = [_values(column) for column in self._table.columns]
        except (OSError, ValueError, zlib.error, pa.ArrowException) as error:
            raise BadInput(f"cannot read {self.path}: {str(error).partition(chr(10))[0]}") from error
        problem = problem_of_rows(columns, zip(*values, strict=True))
        if problem is not None:
            raise BadInput(f"{self.path}: {problem}; it is damaged")

    def cells(self) -> Iterator[tuple[str, list[Row]]]:
        """The rows of one cell after the other, each with their digest."""
        start = 0
        for digest, same in itertools.groupby(self._table["digest"].to_pylist()):
            count = len(list(same))
            yield digest, [dict.fromkeys(COLUMNS) | row for row in self._table.slice(start, count).to_pylist()]
            start += count

    def frame(self) -> pd.DataFrame:
        """The rows as a frame, with the columns of the current schema."""
        frame: pd.DataFrame = self._table.to_pandas().reindex(columns=list(COLUMNS))
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


def _packed(runs: Mapping[str, Mapping[str, Any]]) -> bytes:
    text = json.dumps(runs, ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), level=9))  # Parquet does not compress its metadata


def _unpacked(packed: bytes) -> dict[str, dict[str, Any]]:
    """The records of runs; raises ``ValueError``, or ``zlib.error``, for what ``_packed`` did not write."""
    runs = json_object(zlib.decompress(base64.b64decode(packed)))
    if runs is None or not all(is_record(json.dumps(record)) for record in runs.values()):
        raise ValueError("the records of its runs are none that a run writes")
    return runs


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; raises ``ValueError`` for a number that is none."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_floating(column.type) and compute.any(compute.is_nan(column)).as_py():
        raise ValueError("a number that is not finite")
    values: list[Any] = column.to_pylist()
    return values

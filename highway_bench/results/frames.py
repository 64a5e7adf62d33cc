"""Frames: the rows of a store for pandas.

Most of the time goes into values that SQLite hands to Python one by one. So the columns that the rows of an attempt
share are fetched from the first of them alone, and text becomes codes of its distinct values.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from highway_bench.results.schema import COLUMNS, LATER_ATTEMPT, OWN

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SHARED: Final = tuple(name for name in COLUMNS if name not in OWN)
ATTEMPT: Final = f"""("digest" || ("axis" IS '{LATER_ATTEMPT}'))"""
"""In SQL: what differs between any two attempts at cells."""
AT_ONCE: Final = 2_000  # rows that are objects of Python at a time: few enough to stay in the caches


def packed(names: Sequence[str], cursor: sqlite3.Cursor) -> pa.Table:
    """The rows that ``cursor`` gives, with the columns ``names`` and at last ``ATTEMPT``."""
    import pyarrow as pa

    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.large_string()}
    schema = pa.schema([*((name, kinds[COLUMNS[name][0]]) for name in names), ("attempt", pa.large_string())])
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

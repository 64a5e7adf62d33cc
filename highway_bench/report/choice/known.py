"""The committed part of the wide table, which travels with the package: written by ``python -m docs.pages``."""

from __future__ import annotations

import pandas as pd

from highway_bench.frames.rows import rows_of
from highway_bench.report.choice.columns import typed
from highway_bench.results.known import FINALS, FOLDER, PLAIN, TABLE, known


def known_answers() -> pd.DataFrame:
    """The wide table of the committed rows."""
    return typed(rows_of(pd.read_parquet(FOLDER / TABLE)))


def known_finals() -> pd.DataFrame:
    """The final trainings of the committed rows, as ``table.finals_of`` has them."""
    return pd.read_parquet(FOLDER / FINALS)


def plain_texts() -> dict[str, dict[str, str]]:
    """The files of plain torch by connection and start, as ``highway_bench.export`` writes them."""
    texts: dict[str, dict[str, str]] = {}
    for row in known(PLAIN):
        texts.setdefault(row["connection"], {})[row["start"]] = row["text"]
    return texts


def bytes_of(table: pd.DataFrame) -> bytes:
    """``table`` as a Parquet file."""
    return table.to_parquet(compression="zstd", index=False)

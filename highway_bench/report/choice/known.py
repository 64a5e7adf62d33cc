"""The committed part of the wide table, which travels with the package: written by ``python -m docs.pages``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from highway_bench.report.choice.columns import typed
from highway_bench.report.rows import rows_of

FOLDER: Final = Path(__file__).with_name("committed")
TABLE, FINALS, PLAIN = "answers.parquet", "finals.parquet", "plain.parquet"
"""The wide table of the committed rows, their final trainings, a row for each seed, and connections as plain torch."""


def known_answers() -> pd.DataFrame:
    """The wide table of the committed rows."""
    return typed(rows_of(pd.read_parquet(FOLDER / TABLE)))


def known_finals() -> pd.DataFrame:
    """The final trainings of the committed rows, as ``table.finals_of`` has them."""
    return pd.read_parquet(FOLDER / FINALS)


def plain_texts() -> dict[str, dict[str, str]]:
    """The files of plain torch by connection and start, as ``highway_bench.export`` writes them."""
    texts: dict[str, dict[str, str]] = {}
    for row in rows_of(pd.read_parquet(FOLDER / PLAIN)):
        texts.setdefault(row["connection"], {})[row["start"]] = row["text"]
    return texts


def bytes_of(table: pd.DataFrame) -> bytes:
    """``table`` as a Parquet file."""
    return table.to_parquet(compression="zstd", index=False)

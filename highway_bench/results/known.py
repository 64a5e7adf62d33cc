"""The committed results that travel with the package: written by ``python -m docs.pages``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pyarrow import parquet

FOLDER: Final = Path(__file__).with_name("committed")
TABLE, FINALS, PLAIN = "answers.parquet", "finals.parquet", "plain.parquet"
"""The wide table of the committed rows, their final trainings, a row for each seed, and connections as plain torch."""


def known(name: str) -> list[dict[str, Any]]:
    """The rows of the table of this file name."""
    rows: list[dict[str, Any]] = parquet.ParquetFile(FOLDER / name).read().to_pylist()  # read_table imports pandas
    return rows

"""The committed results that travel with the package: written by ``python -m docs.pages``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

FOLDER: Final = Path(__file__).with_name("committed")
TABLE, FINALS, PLAIN = "answers.parquet", "finals.parquet", "plain.parquet"
"""The wide table of the committed rows, their final trainings, a row for each seed, and connections as plain torch."""


def known(name: str) -> pd.DataFrame:
    """The table of this file name."""
    return pd.read_parquet(FOLDER / name)

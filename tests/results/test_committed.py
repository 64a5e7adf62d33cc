"""The committed rows of this checkout: whole files, at most 10 MB in all."""

from __future__ import annotations

from pathlib import Path

import pytest

from highway_bench.results import LATER_ATTEMPT
from highway_bench.results.parquet import ParquetRows
from highway_bench.results.schema import OWN

FILES = sorted((Path(__file__).parents[2] / "docs/data").rglob("*.parquet"))
MOST_BYTES = 10_000_000


def test_committed_rows_are_whole_and_small() -> None:
    """Rows of one attempt differ in their own columns alone: a store reads the others once for each attempt."""
    if not FILES:
        pytest.skip("no rows are committed yet")
    assert sum(path.stat().st_size for path in FILES) <= MOST_BYTES
    for path in FILES:
        exported = ParquetRows(path)
        assert exported.runs()
        frame = exported.frame()
        assert set(frame["run_id"]) <= set(exported.runs())
        later = frame["axis"] == LATER_ATTEMPT
        shared = frame.drop(columns=list(OWN)).assign(later=later).drop_duplicates()
        assert not shared.duplicated(["digest", "later"]).any(), path

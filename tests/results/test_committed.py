"""The committed rows of this checkout: whole files, at most 10 MB in all."""

from __future__ import annotations

from pathlib import Path

import pytest

from highway_bench.results.parquet import ParquetRows

FILES = sorted((Path(__file__).parents[2] / "docs/data").rglob("*.parquet"))
MOST_BYTES = 10_000_000


def test_committed_rows_are_whole_and_small() -> None:
    if not FILES:
        pytest.skip("no rows are committed yet")
    assert sum(path.stat().st_size for path in FILES) <= MOST_BYTES
    for path in FILES:
        exported = ParquetRows(path)
        assert exported.runs
        assert {row["run_id"] for _, rows in exported.cells() for row in rows} <= set(exported.runs)

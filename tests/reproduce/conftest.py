"""Shared by the tests of reproductions: the prepared rows of cells with given metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from highway_bench.cell import Cell
from highway_bench.report.rows import prepared
from highway_bench.results.schema import row


def rows_of(values: Mapping[Cell, Mapping[str, float]]) -> pd.DataFrame:
    """One row per metric. A value that is not finite becomes null, and its run has diverged."""
    rows: list[dict[str, Any]] = []
    for index, (cell, metrics) in enumerate(values.items()):
        for metric, value in metrics.items():
            fine = math.isfinite(value)
            rows.append(
                row(
                    **cell.columns(),
                    metric=metric,
                    value=value if fine else None,
                    machine="m",
                    status="ok" if fine else "diverged",
                    time_utc="2026-01-01",
                    digest=f"d{index}",
                )
            )
    return prepared(pd.DataFrame(rows))


@pytest.fixture(name="rows_of")
def rows_of_fixture() -> Any:
    return rows_of

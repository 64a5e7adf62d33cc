"""What tests of reproductions share: the prepared rows of cells whose metrics are given."""

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
    """A row a metric; a value that is not finite is null, and its run diverged."""
    rows: list[dict[str, Any]] = []
    for place, (cell, metrics) in enumerate(values.items()):
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
                    digest=f"d{place}",
                )
            )
    return prepared(pd.DataFrame(rows))


@pytest.fixture(name="rows_of")
def rows_of_fixture() -> Any:
    return rows_of

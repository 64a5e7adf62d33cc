"""Cells without a measurement, with the reason."""

from __future__ import annotations

import pandas as pd

from highway_bench.frames.cells import by_cell
from highway_bench.results.schema import FAILURES, LATER_ATTEMPT, Status

COLUMNS = ["task", "family_label", "block", "depth", "phase", "dataset", "status", "message"]

HAS_RESULT = "after the reported result"


def failures_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.failures``."""
    bad = rows[rows["status"].isin([*FAILURES, Status.SKIPPED])]
    later = bad["axis"].eq(LATER_ATTEMPT)
    remarks = bad["message"].fillna("")
    bad = bad.assign(axis=bad["axis"].mask(later, ""), message=remarks.mask(later, remarks + f" ({HAS_RESULT})"))
    table = by_cell(bad, ())
    table["message"] = table["message"].fillna("")
    counted = table.groupby(COLUMNS, dropna=False, sort=False).size().reset_index(name="cells")
    order = [*sorted(FAILURES), str(Status.SKIPPED)]
    return counted.sort_values(
        ["status", "task"],
        key=lambda column: column.map(order.index) if column.name == "status" else column,
        kind="stable",
        ignore_index=True,
    )

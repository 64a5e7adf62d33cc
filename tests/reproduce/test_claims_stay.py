"""Failed or missing runs: the findings list the same claims, and none is decided."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from highway_bench.report.rows import prepared
from highway_bench.reproduce.base import Verdict, reproductions
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row
from highway_bench.tasks import tasks

REQUESTS = {
    "thousand": Request(),
    "gates": Request(),
    "gate-bias": Request(),
    "shortcuts": Request(),
    "flops": Request(),
}


def failed(cells: Any) -> pd.DataFrame:
    """The rows of failed cells: one without a value for every metric of the task."""
    return prepared(
        pd.DataFrame(
            [
                row(
                    **cell.columns(),
                    metric=metric.name,
                    status="failed",
                    time_utc="2026-01-01",
                    machine="m",
                    digest=f"d{index}",
                )
                for index, cell in enumerate(cells)
                for metric in tasks.get(cell.task).metrics
            ]
        )
    )


@pytest.mark.parametrize("name", REQUESTS)
def test_failures_keep_every_claim_and_decide_none(name: str) -> None:
    study, request = reproductions.get(name), REQUESTS[name]
    cells = study.cells(request)
    every = study.outcome(failed(cells), request).findings
    assert {one.verdict for one in every} == {Verdict.NOT_TESTABLE}
    for missing in (cells[0], cells[-1]):
        rows = failed([cell for cell in cells if cell != missing])
        assert [one.published for one in study.outcome(rows, request).findings] == [one.published for one in every]

"""Whatever did not end, the same claims are listed, and failures decide none of them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from highway_bench.report.rows import prepared
from highway_bench.reproduce.base import Verdict, reproductions
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row
from highway_bench.tasks import tasks

ASKED = {"thousand": Request(), "gates": Request(), "gate-bias": Request(), "shortcuts": Request(), "flops": Request()}


def failed(cells: Any) -> pd.DataFrame:
    """As a run writes cells without values: a row for every metric of the task."""
    return prepared(
        pd.DataFrame(
            [
                row(
                    **cell.columns(),
                    metric=metric.name,
                    status="failed",
                    time_utc="2026-01-01",
                    machine="m",
                    digest=f"d{place}",
                )
                for place, cell in enumerate(cells)
                for metric in tasks.get(cell.task).metrics
            ]
        )
    )


@pytest.mark.parametrize("name", ASKED)
def test_failures_keep_every_claim_and_decide_none(name: str) -> None:
    study, request = reproductions.get(name), ASKED[name]
    cells = study.cells(request)
    every = study.outcome(failed(cells), request).findings
    assert {one.verdict for one in every} == {Verdict.NOT_TESTABLE}
    for left in (cells[0], cells[-1]):
        rows = failed([cell for cell in cells if cell != left])
        assert [one.published for one in study.outcome(rows, request).findings] == [one.published for one in every]

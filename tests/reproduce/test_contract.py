"""What every reproduction must keep: the same claims whatever ended, and no verdict from a part of its runs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from highway_bench.cell import Cell
from highway_bench.execution.needs import with_needs
from highway_bench.report.rows import prepared
from highway_bench.reproduce.base import Conclusion, Verdict, ended_cells, reproductions
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row


def failed(cell: Cell, number: int) -> dict[str, Any]:
    """The row of a cell whose worker died."""
    return row(
        **cell.columns(),
        metric="final_loss",
        status="crashed",
        message="its worker died",
        machine="m",
        time_utc="2026-01-01",
        digest=str(number),
    )


def of_failures(name: str) -> Conclusion:
    one, request = reproductions.get(name), Request()
    rows = [failed(cell, number) for number, cell in enumerate(with_needs(one.cells(request)))]
    return one.conclude(prepared(pd.DataFrame(rows)), request)


@pytest.mark.parametrize("name", reproductions.names())
def test_runs_that_all_failed_give_every_claim_and_no_verdict(name: str) -> None:
    found = of_failures(name)
    assert found.findings
    assert {one.verdict for one in found.findings} == {Verdict.NOT_TESTABLE}
    assert all("did not end" in one.measured for one in found.findings)
    assert all(one.published and one.source for one in found.findings)


@pytest.mark.parametrize("name", reproductions.names())
def test_every_cell_is_known_again_by_its_row(name: str) -> None:
    """The guard that a verdict rests on whole data compares cells with rows: they must agree to the letter."""
    cells = list(with_needs(reproductions.get(name).cells(Request())))
    rows = [failed(cell, number) | {"status": "ok"} for number, cell in enumerate(cells)]
    assert ended_cells(prepared(pd.DataFrame(rows))) == {cell.key for cell in cells}


def test_fewer_seeds_than_a_verdict_takes() -> None:
    one = reproductions.get("inits")
    request = Request(seeds=1)
    rows = [
        failed(cell, number) | {"status": "ok", "metric": "success", "value": 1.0}
        for number, cell in enumerate(with_needs(one.cells(request)))
    ]
    found = one.conclude(prepared(pd.DataFrame(rows)), request)
    assert {finding.verdict for finding in found.findings} == {Verdict.NOT_TESTABLE}
    assert all("1 of at least 3 seeds" in finding.measured for finding in found.findings)


def test_a_shorter_budget_contradicts_nothing() -> None:
    """Every network fails that is trained for five steps."""
    one = reproductions.get("inits")
    found = {}
    for steps in (None, 5):
        request = Request(steps=steps)
        ended = [
            failed(cell, number) | {"status": "stalled", "metric": metric, "value": value}
            for number, cell in enumerate(with_needs(one.cells(request)))
            for metric, value in (("success", 0.0), ("final_loss", 2.3))
        ]
        found[steps] = one.conclude(prepared(pd.DataFrame(ended)), request).findings
    assert Verdict.CONTRADICTED in {finding.verdict for finding in found[None]}
    assert {finding.verdict for finding in found[5]} == {Verdict.NOT_TESTABLE}
    assert "less than this scale's budget" in found[5][0].measured

"""The contract of every reproduction: the same claims whatever ended, and no verdict from a part of the runs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable

import pandas as pd
import pytest

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.execution.schedule import with_needs
from highway_bench.studies.reproduce.base import Reproduction, ended_cells, reproductions
from highway_bench.studies.reproduce.claims import Verdict
from highway_bench.studies.reproduce.quantities import Statistic
from highway_bench.studies.reproduce.request import Request
from highway_bench.tasks import tasks
from tests.reproduce.conftest import followed, rows_of


def failed_rows(cells: Iterable[Cell]) -> pd.DataFrame:
    """The rows of cells whose worker died: one without a value for every metric of the task."""
    values = {cell: {metric.name: math.nan for metric in tasks.get(cell.task).metrics} for cell in cells}
    return rows_of(values, status="crashed")


def ended_rows(one: Reproduction, request: Request) -> pd.DataFrame:
    """The rows of all cells and of those that they need, all alike; whoever has a step time has its samples."""
    values = followed(one, request, lambda cell: {metric.name: 0.5 for metric in tasks.get(cell.task).metrics})
    trials = {cell: {"final_loss": 0.5, "success": 1.0} for cell in with_needs(values) if cell not in values}
    return rows_of(values | trials, samples=json.dumps([0.5] * 15), params=1_000.0)


@pytest.mark.parametrize("name", reproductions.names())
def test_a_part_of_the_runs_gives_every_claim(name: str) -> None:
    one, request = reproductions.get(name), Request(device="cpu")
    for dataset in sorted({cell.dataset for cell in one.cells(request) if cell.dataset}):
        if missing := make_dataset(dataset).missing():  # some verdicts compare with the data's most frequent class
            pytest.skip(missing)
    rows = ended_rows(one, request)
    claims = [claim.statement for claim in one.claims(request)]
    for column in ("block", "depth", "family", "seed"):
        part = rows[rows[column] != rows[column].iloc[0]]
        assert [one.claim.statement for one in one.outcome(part, request).findings] == claims


@pytest.mark.parametrize("name", reproductions.names())
def test_failed_or_missing_runs_give_every_claim_and_no_verdict(name: str) -> None:
    one, request = reproductions.get(name), Request()
    cells = list(with_needs(one.cells(request)))
    findings = one.conclude(failed_rows(cells), request).findings
    assert findings
    assert {finding.verdict for finding in findings} == {Verdict.NOT_TESTABLE}
    assert all("did not end" in finding.measured for finding in findings)
    assert all(finding.claim.statement and finding.claim.source for finding in findings)
    every = one.outcome(failed_rows(cells), request).findings
    assert {finding.verdict for finding in every} == {Verdict.NOT_TESTABLE}, "the rules take failures for results"
    for missing in (cells[0], cells[-1]):
        rows = failed_rows(cell for cell in cells if cell != missing)
        assert [finding.claim.statement for finding in one.outcome(rows, request).findings] == [
            finding.claim.statement for finding in findings
        ]


CELLS = {
    "bilstm": 72,
    "faulty-bilstm": 18,
    "figure1": 40,
    "flops": 27,
    "gate-bias": 47,
    "gates": 30,
    "inits": 96,
    "lecture": 8,
    "lecture-keras": 7,
    "long-range": 48,
    "parallel": 20,
    "recurrence": 18,
    "shortcuts": 176,
    "thousand": 42,
    "unattenuated": 120,
    "vanishing": 50,
}


@pytest.mark.parametrize("name", reproductions.names())
def test_the_claims_are_stated_before_anything_is_run(name: str) -> None:
    """Each has its rule with a date, a power or the reason for none, and becomes the finding at its position."""
    one, request = reproductions.get(name), Request()
    claims = one.claims(request)
    nothing = one.outcome(failed_rows(one.cells(request)), request).findings
    assert [finding.claim.rule for finding in nothing] == [claim.rule for claim in claims]
    for claim in claims:
        assert re.search(r"reproduced if .+; (never )?contradicted.*rule \d+ of 2026-\d\d-\d\d", claim.rule)
        assert claim.power_text(claim.power())
    assert len(one.cells(request)) == CELLS[name]


COMPARED = {Statistic.PAIRED, Statistic.BEST, Statistic.ORDER, Statistic.RATES}


@pytest.mark.parametrize("name", reproductions.names())
def test_a_comparison_of_two_arms_has_a_guard(name: str) -> None:
    """It says when the reference is no reference: an arm that has not trained."""
    claims = reproductions.get(name).claims(Request())
    assert [claim.statement for claim in claims if claim.statistic in COMPARED and not claim.guard] == []


@pytest.mark.parametrize("name", reproductions.names())
def test_every_cell_is_identified_by_its_row(name: str) -> None:
    """``conclude`` compares the keys of cells and rows to find runs that did not end, so they must be equal."""
    cells = list(with_needs(reproductions.get(name).cells(Request())))
    assert ended_cells(rows_of({cell: {"final_loss": 0.5} for cell in cells})) == {cell.key for cell in cells}


def test_fewer_seeds_than_a_verdict_takes() -> None:
    one = reproductions.get("inits")
    request = Request(seeds=1)
    result = one.conclude(rows_of(followed(one, request, lambda cell: {"success": 1.0, "final_loss": 0.1})), request)
    assert {finding.verdict for finding in result.findings} == {Verdict.NOT_TESTABLE}
    assert all("1 of at least 3 seeds" in finding.measured for finding in result.findings)


@pytest.mark.parametrize(
    ("success", "expected"), [(0.0, Verdict.SUGGESTIVE_AGAINST), (1.0, Verdict.SUGGESTIVE)], ids=["fails", "trains"]
)
def test_a_shorter_budget_decides_nothing(success: float, expected: Verdict) -> None:
    """Any network that is trained for only five steps fails."""
    one = reproductions.get("inits")
    result = {}
    for steps in (None, 5):
        request = Request(steps=steps)
        ended = followed(one, request, lambda cell: {"success": success, "final_loss": 2.3 if not success else 0.1})
        result[steps] = one.conclude(rows_of(ended), request).findings
    assert expected in {finding.verdict for finding in result[None]}
    assert {finding.verdict for finding in result[5]} == {Verdict.NOT_TESTABLE}
    assert "less than this scale's budget" in result[5][0].measured

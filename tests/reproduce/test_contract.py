"""The contract of every reproduction: the same claims whatever ended, and no verdict from a part of the runs."""

import json
import math
import re

import pytest

from highway_bench.data import make_dataset
from highway_bench.execution.schedule import with_needs
from highway_bench.studies.reproduce.base import ended_cells, reproductions
from highway_bench.studies.reproduce.quantities import Statistic
from highway_bench.studies.reproduce.request import Request
from highway_bench.tasks import tasks
from tests.reproduce.conftest import A, N, S, followed, rows_of

EVERY = pytest.mark.parametrize("name", reproductions.names())


def failed_rows(cells):
    """The rows of cells whose worker died: one without a value for every metric of the task."""
    values = {cell: {metric.name: math.nan for metric in tasks.get(cell.task).metrics} for cell in cells}
    return rows_of(values, status="crashed")


def ended_rows(one, request):
    """The rows of all cells and of those that they need, all alike; whoever has a step time has its samples."""
    values = followed(one, request, lambda cell: {metric.name: 0.5 for metric in tasks.get(cell.task).metrics})
    trials = {cell: {"final_loss": 0.5, "success": 1.0} for cell in with_needs(values) if cell not in values}
    return rows_of(values | trials, samples=json.dumps([0.5] * 15), params=1_000.0)


@EVERY
def test_a_part_of_the_runs_gives_every_claim(name):
    one, request = reproductions.get(name), Request(device="cpu")
    for dataset in sorted({cell.dataset for cell in one.cells(request) if cell.dataset}):
        if missing := make_dataset(dataset).missing():  # some verdicts compare with the data's most frequent class
            pytest.skip(missing)
    rows = ended_rows(one, request)
    claims = [claim.statement for claim in one.claims(request)]
    for column in ("block", "depth", "family", "seed"):
        part = rows[rows[column] != rows[column].iloc[0]]
        assert [one.claim.statement for one in one.outcome(part, request).findings] == claims


@EVERY
def test_failed_or_missing_runs_give_every_claim_and_no_verdict(name):
    one, request = reproductions.get(name), Request()
    cells = list(with_needs(one.cells(request)))
    findings = one.conclude(failed_rows(cells), request).findings
    assert {finding.verdict for finding in findings} == {N}
    assert all("did not end" in finding.measured for finding in findings)
    every = one.outcome(failed_rows(cells), request).findings
    assert {finding.verdict for finding in every} == {N}, "the rules take failures for results"
    for missing in (cells[0], cells[-1]):
        rows = failed_rows(cell for cell in cells if cell != missing)
        assert len(one.outcome(rows, request).findings) == len(findings)


@EVERY
def test_the_claims_are_stated_before_anything_is_run(name):
    """Each has its rule with a date, a power or the reason for none, and becomes the finding at its position. A
    comparison of two arms says when the reference is no reference: an arm that has not trained."""
    one, request = reproductions.get(name), Request()
    claims = one.claims(request)
    nothing = one.outcome(failed_rows(one.cells(request)), request).findings
    assert [finding.claim.rule for finding in nothing] == [claim.rule for claim in claims]
    for claim in claims:
        assert re.search(r"reproduced if .+; (never )?contradicted.*rule \d+ of \d{4}-\d\d-\d\d", claim.rule)
        assert claim.source
        assert claim.power_text(claim.power())
        compared = claim.statistic in {Statistic.PAIRED, Statistic.BEST, Statistic.ORDER, Statistic.RATES}
        assert claim.guard or not compared


@EVERY
def test_every_cell_is_identified_by_its_row(name):
    """``conclude`` compares the keys of cells and rows to find runs that did not end, so they must be equal. Names,
    options and widths are valid at every scale."""
    one = reproductions.get(name)
    for scale in one.scales:
        own = one.cells(Request(scale=scale))
        assert own
        assert len(set(own)) == len(own)
        cells = list(with_needs(own))
        assert ended_cells(rows_of({cell: {"final_loss": 0.5} for cell in cells})) == {cell.identity for cell in cells}


def test_fewer_seeds_than_a_verdict_takes():
    one, request = reproductions.get("inits"), Request(seeds=1)
    result = one.conclude(rows_of(followed(one, request, lambda cell: {"success": 1.0, "final_loss": 0.1})), request)
    assert {finding.verdict for finding in result.findings} == {N}


@pytest.mark.parametrize(("success", "expected"), [(0.0, A), (1.0, S)], ids=["fails", "trains"])
def test_a_shorter_budget_decides_nothing(success, expected):
    """Any network that is trained for only five steps fails."""
    one = reproductions.get("inits")
    for steps, verdict in ((None, expected), (5, N)):
        request = Request(steps=steps)
        ended = followed(one, request, lambda cell: {"success": success, "final_loss": 2.3 if not success else 0.1})
        assert {finding.verdict for finding in one.conclude(rows_of(ended), request).findings} == {verdict}

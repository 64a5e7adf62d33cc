"""Long ranges: the protocol, and the verdicts for given steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from highway_bench.execution.needs import with_needs
from highway_bench.report.rows import prepared
from highway_bench.reproduce import long_range
from highway_bench.reproduce.base import Conclusion, reproductions
from highway_bench.reproduce.claims import Evidence, Verdict
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row

LONG_RANGE = reproductions.get("long-range")
MISS = math.inf
Steps = Mapping[tuple[str, str], Mapping[int, float]]  # (problem, family) → length → step of the hit

LIKE_THE_CLAIM: Steps = {
    ("adding", "attention"): {25: 150, 50: 180, 100: 220, 200: 300},
    ("adding", "bilstm"): {25: 150, 50: 500, 100: MISS, 200: MISS},
    ("copy", "attention"): {50: 300, 100: 350},
    ("copy", "bilstm"): {50: 400, 100: MISS},
}

THREE = Request(seeds=3)


def rows_of(steps: Steps, seeds: int = 3) -> pd.DataFrame:
    """Rows of all runs and of the tuning runs. Every block of a family hits at these steps, plus 3 per seed."""
    rows = []
    for number, cell in enumerate(with_needs(LONG_RANGE.cells(Request(seeds=seeds)))):
        hit = steps[str(cell.dataset), cell.family][int(cell.seq_len or 0)] + 3 * (cell.seed - LONG_RANGE.version.seen)
        own = cell.columns() | {
            "time_utc": "2026-01-01",
            "machine": "m",
            "digest": str(number),
            "params": 1_000,
            "status": "ok" if hit < MISS else "stalled",
        }
        values: dict[str, Any] = {
            "steps_to_threshold": hit if hit < MISS else None,
            "success": float(hit < MISS),
            "final_loss": 0.001 if hit < MISS else 0.16,
            "rate": 0.003,
            "step_seconds": 0.02,
        }
        rows += [row(**own, metric=metric, value=value) for metric, value in values.items()]
    return prepared(pd.DataFrame(rows))


def outcome(steps: Steps, seeds: int = 3) -> Conclusion:
    return LONG_RANGE.outcome(rows_of(steps, seeds), Request(seeds=seeds))


def verdicts(result: Conclusion, problem: str, what: str) -> list[Verdict]:
    """The verdicts on both pairs of arms."""
    return [
        one.verdict
        for one in result.findings
        if one.claim.statement.startswith(problem) and what in one.claim.statement
    ]


def test_all_are_tuned_over_the_same_rates_within_the_same_steps() -> None:
    cells = LONG_RANGE.cells(Request())
    for problem in long_range.PROBLEMS:
        assert len({str(cell.recipe) for cell in cells if cell.dataset == problem}) == 1
    assert {cell.recipe["rate"] for cell in cells} == {"tuned"}
    assert {cell.recipe.get("layout") for cell in cells if cell.dataset == "adding"} == {"last-step"}
    assert {(cell.family, cell.block, cell.width) for cell in cells} == {
        ("attention", "pre-norm", 32),
        ("attention", "highway", 28),
        ("bilstm", "plain", 32),
        ("bilstm", "highway", 30),
    }
    assert {cell.recipe["steps"] for cell in LONG_RANGE.cells(Request(steps=7, seeds=1))} == {7}


def test_steps_like_the_claims() -> None:
    result = outcome(LIKE_THE_CLAIM)
    assert {one.verdict for one in result.findings} == {Verdict.SUGGESTIVE}  # three against three
    assert "has p = 0.1 by chance" in result.findings[0].measured
    assert {one.verdict for one in outcome(LIKE_THE_CLAIM, seeds=6).findings} == {Verdict.REPRODUCED}
    assert {one.claim.evidence for one in result.findings if "path length" in one.claim.statement} == {Evidence.OURS}
    assert "with 1,000 against 1,000 parameters" in result.findings[0].measured
    (table,), (picture,) = result.tables, result.pictures
    assert len(table.entries) == (4 + 2) * 4
    assert picture.title == "Adding at T = 200: highway attention takes 303 steps, highway bilstm misses"


@pytest.mark.parametrize(("slower", "faster"), [("bilstm", "attention"), ("attention", "bilstm")])
def test_an_arm_that_misses_at_the_shortest_length_decides_nothing(slower: str, faster: str) -> None:
    never = {("copy", slower): {50: MISS, 100: MISS}, ("copy", faster): {50: 300, 100: 350}}
    result = outcome(LIKE_THE_CLAIM | never)
    assert verdicts(result, "copy", "easier") == [Verdict.NOT_TESTABLE] * 2
    assert verdicts(result, "copy", "path length") == [Verdict.NOT_TESTABLE] * 2
    assert any("misses at T = 50 too" in one.measured for one in result.findings)


@pytest.mark.parametrize("family", ["attention", "both"])
def test_a_budget_in_which_attention_misses_tests_nothing(family: str) -> None:
    misses = {("adding", "attention"): {25: 150, 50: 180, 100: MISS, 200: MISS}}
    if family == "attention":
        misses[("adding", "bilstm")] = {25: 150, 50: 200, 100: 300, 200: 400}
    result = outcome(LIKE_THE_CLAIM | misses)
    assert verdicts(result, "adding", "path length") == [Verdict.NOT_TESTABLE] * 2
    expected = Verdict.SUGGESTIVE_AGAINST if family == "attention" else Verdict.NOT_TESTABLE
    assert verdicts(result, "adding", "easier") == [expected] * 2


def test_a_growth_that_is_only_bounded_from_below_cannot_contradict() -> None:
    late = {("adding", "bilstm"): {25: 900, 50: MISS, 100: MISS, 200: MISS}}
    assert verdicts(outcome(LIKE_THE_CLAIM | late), "adding", "path length") == [Verdict.NOT_TESTABLE] * 2
    slow = {("adding", "bilstm"): {25: 800, 50: 810, 100: 820, 200: 830}}
    assert verdicts(outcome(LIKE_THE_CLAIM | slow), "adding", "path length") == [Verdict.SUGGESTIVE_AGAINST] * 2


def test_seeds_that_disagree_or_are_few_decide_nothing() -> None:
    near = {("adding", "bilstm"): LIKE_THE_CLAIM["adding", "attention"]}
    assert set(verdicts(outcome(LIKE_THE_CLAIM | near), "adding", "")) == {Verdict.UNDECIDED}
    assert {one.verdict for one in outcome(LIKE_THE_CLAIM, seeds=2).findings} == {Verdict.NOT_TESTABLE}


def test_failed_runs_are_not_misses() -> None:
    rows = rows_of(LIKE_THE_CLAIM)
    failed = LONG_RANGE.outcome(rows.assign(status="timeout", value=float("nan")), THREE)
    assert {one.verdict for one in failed.findings} == {Verdict.NOT_TESTABLE}
    assert list(failed.pictures) == []


def test_the_claims_are_the_same_whatever_is_missing() -> None:
    rows, claims = rows_of(LIKE_THE_CLAIM), [one.claim.statement for one in outcome(LIKE_THE_CLAIM).findings]
    assert Verdict.SUGGESTIVE in {one.verdict for one in LONG_RANGE.conclude(rows, THREE).findings}
    digests = sorted(set(rows["digest"]), key=int)
    parts = [rows[rows["digest"] != digest] for digest in digests[::40]]
    families = [rows[rows["family"] != family] for family in long_range.FAMILIES]
    for part in (rows[:0], rows.assign(status="timeout", value=float("nan")), *families, *parts):
        result = LONG_RANGE.conclude(part, THREE)
        assert [one.claim.statement for one in result.findings] == claims
        assert {one.verdict for one in result.findings} == {Verdict.NOT_TESTABLE}


def test_the_title_compares_both_at_one_length() -> None:
    rows = rows_of(LIKE_THE_CLAIM)
    left = rows[~((rows["family"] == "bilstm") & (rows["seq_len"] == 200))]
    (picture,) = LONG_RANGE.outcome(left, THREE).pictures
    assert picture.title == "Adding at T = 100: highway attention takes 223 steps, highway bilstm misses"

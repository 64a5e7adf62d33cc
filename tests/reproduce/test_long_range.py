"""Long ranges: the protocol, and the verdicts for given steps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
import pytest

from highway_bench.cell import Cell
from highway_bench.studies.reproduce import long_range
from highway_bench.studies.reproduce.base import Conclusion, reproductions
from highway_bench.studies.reproduce.claims import Evidence, Verdict
from highway_bench.studies.reproduce.request import Request
from tests.reproduce import conftest
from tests.reproduce.conftest import A, N, S, U, verdicts

LONG_RANGE = reproductions.get("long-range")
MISS = math.inf
Steps = Mapping[str, Mapping[int, float]]  # family → length → step of the hit

LIKE_THE_CLAIM: Steps = {
    "attention": {25: 150, 50: 180, 100: 220, 200: 300},
    "bilstm": {25: 150, 50: 500, 100: MISS, 200: MISS},
}
THE_OTHER_WAY: Steps = {
    "attention": {25: 150, 50: 500, 100: 900, 200: MISS},
    "bilstm": {25: 150, 50: 180, 100: 220, 200: 300},
}


def rows_of(steps: Steps, *, missed: Mapping[tuple[str, int], int] | None = None, seeds: int = 10) -> pd.DataFrame:
    """Rows of all runs and of the tuning runs. Every block of a family hits at these steps, plus 3 per seed; the first
    ``missed`` seeds of a family and a length miss."""

    def metrics(cell: Cell) -> dict[str, float]:
        family, length, seed = cell.family, int(cell.seq_len or 0), cell.seed - LONG_RANGE.version.seen
        hit = MISS if seed < (missed or {}).get((family, length), 0) else steps[family][length] + 3 * seed
        reached = {"steps_to_threshold": hit} if hit < MISS else {}
        ended = {"success": float(hit < MISS), "final_loss": 0.001 if hit < MISS else 0.16}
        return {**ended, **reached, "rate": cell.recipe["rate"], "step_seconds": 0.02}

    return conftest.rows_of(conftest.followed(LONG_RANGE, Request(seeds=seeds), metrics), params=1_000.0)


def outcome(steps: Steps, *, missed: Mapping[tuple[str, int], int] | None = None, seeds: int = 10) -> Conclusion:
    return LONG_RANGE.outcome(rows_of(steps, missed=missed, seeds=seeds), Request(seeds=seeds))


def test_all_begin_with_the_same_rates_within_the_same_steps() -> None:
    arms = LONG_RANGE.arms(Request()).values()
    cells = [one.template for one in arms]
    assert len(cells) == 4 * 4
    assert len({str(cell.recipe) for cell in cells}) == len({str(one.first) for one in arms}) == 1
    assert {cell.recipe["layout"] for cell in cells} == {"last-step"}
    assert {(cell.family, cell.block, cell.width) for cell in cells} == {
        ("attention", "pre-norm", 32),
        ("attention", "highway", 28),
        ("bilstm", "plain", 32),
        ("bilstm", "highway", 30),
    }
    assert {cell.recipe["steps"] for cell in LONG_RANGE.cells(Request(steps=7, seeds=1))} == {7}


def test_steps_like_the_claims() -> None:
    result = outcome(LIKE_THE_CLAIM)
    assert set(verdicts(result)) == {S}
    assert {one.claim.evidence for one in result.findings if "the path has" in one.claim.statement} == {Evidence.OURS}
    (table,) = result.tables
    assert len(table.entries) == 4 * 4


def test_steps_the_other_way_contradict() -> None:
    assert set(verdicts(outcome(THE_OTHER_WAY))) == {A}


@pytest.mark.parametrize("family", ["attention", "bilstm"])
def test_an_arm_that_misses_the_shortest_length_decides_nothing(family: str) -> None:
    for steps in (LIKE_THE_CLAIM, THE_OTHER_WAY):
        assert set(verdicts(outcome(steps, missed={(family, 25): 6}))) == {N}
    half = outcome(LIKE_THE_CLAIM, missed={(family, 25): 5})
    assert set(verdicts(half, "easier")) == {S}
    assert set(verdicts(half, "the path has")) == {U}  # the factor of half of the seeds is unknown


@pytest.mark.parametrize("family", ["attention", "bilstm"])
def test_an_arm_without_runs_at_the_shortest_length_decides_nothing(family: str) -> None:
    rows = rows_of(LIKE_THE_CLAIM)
    result = LONG_RANGE.outcome(rows[~((rows["family"] == family) & (rows["seq_len"] == 25))], Request())
    assert set(verdicts(result)) == {N}


@pytest.mark.parametrize(("misses", "easier"), [(5, S), (6, U)])
def test_misses_of_attention_at_the_longest_length_are_weighed(misses: int, easier: Verdict) -> None:
    result = outcome(LIKE_THE_CLAIM, missed={("attention", 200): misses})
    assert set(verdicts(result, "easier")) == {easier}
    assert set(verdicts(result, "the path has")) == {S}


def test_a_run_that_reached_the_threshold_and_ends_above_it_is_a_miss() -> None:
    rows = rows_of(LIKE_THE_CLAIM)
    lost = rows["metric"].eq("success") & rows["family"].eq("attention") & rows["seq_len"].eq(200)
    result = LONG_RANGE.outcome(rows.assign(value=rows["value"].mask(lost, 0.0)), Request())
    assert set(verdicts(result, "easier")) == {N}


def test_a_length_that_neither_learns_decides_nothing() -> None:
    result = outcome(LIKE_THE_CLAIM, missed={("attention", 200): 10})
    assert set(verdicts(result, "easier")) == {N}


@pytest.mark.parametrize(("misses", "expected"), [(1, S), (2, U), (10, N)])
def test_a_seed_whose_order_is_unknown_counts_against_either_verdict(misses: int, expected: Verdict) -> None:
    """Both miss at T = 100: either may have the larger factor."""
    result = outcome(LIKE_THE_CLAIM, missed={("attention", 100): misses})
    assert set(verdicts(result, "the path has")) == {expected}
    against = outcome(THE_OTHER_WAY, missed={("bilstm", 100): misses, ("attention", 100): 10})
    contradicted = {S: A}.get(expected, expected)
    assert set(verdicts(against, "the path has")) == {contradicted}


def test_a_factor_lies_between_bounds_after_a_miss() -> None:
    hits = {25: {0: 100.0, 1: 100.0, 2: MISS}, 100: {0: 300.0, 1: MISS, 2: 300.0}}
    assert long_range.growths(hits, 2_000) == {0: (3.0, 3.0), 1: (20.0, MISS), 2: (0.0, MISS)}


def test_equal_steps_or_few_seeds_decide_nothing() -> None:
    equal = outcome({"attention": LIKE_THE_CLAIM["attention"], "bilstm": LIKE_THE_CLAIM["attention"]})
    assert set(verdicts(equal, "easier")) == {U}
    assert set(verdicts(equal, "the path has")) == {N}  # equal factors have no order
    assert set(verdicts(outcome(LIKE_THE_CLAIM, seeds=2))) == {N}

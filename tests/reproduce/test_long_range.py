"""Long ranges: the protocol, and the verdicts for given steps."""

import math

import pandas as pd
import pytest

from highway_bench.studies.reproduce import long_range
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.request import Request
from tests.reproduce.conftest import A, N, S, U, followed, rows_of, verdicts

LONG_RANGE = reproductions.get("long-range")
MISS = math.inf
EASIER, GROWS = "easier", "the path has"  # words of the two claims

FAST = {25: 150, 50: 180, 100: 220, 200: 300}
LIKE_THE_CLAIM = {"attention": FAST, "bilstm": {25: 150, 50: 500, 100: MISS, 200: MISS}}
THE_OTHER_WAY = {"attention": {25: 150, 50: 500, 100: 900, 200: MISS}, "bilstm": FAST}


def rows_like(steps, missed=None):
    """Rows of all runs and of the tuning runs. Every block of a family hits at these steps, plus 3 per seed."""

    def metrics(cell):
        family, length, seed = cell.family, int(cell.seq_len or 0), cell.seed - LONG_RANGE.version.seen
        hit = MISS if seed < (missed or {}).get((family, length), 0) else steps[family][length] + 3 * seed
        reached = {"steps_to_threshold": hit} if hit < MISS else {}
        ended = {"success": float(hit < MISS), "final_loss": 0.001 if hit < MISS else 0.16}
        return {**ended, **reached, "rate": cell.recipe["rate"], "step_seconds": 0.02}

    return rows_of(followed(LONG_RANGE, Request(), metrics), params=1_000.0)


def outcome(steps, missed=None):
    return LONG_RANGE.outcome(rows_like(steps, missed), Request())


def test_steps_like_the_claims():
    result = outcome(LIKE_THE_CLAIM)
    assert set(verdicts(result)) == {S}
    assert [len(table.entries) for table in result.tables] == [4 * 4]


@pytest.mark.parametrize(
    ("steps", "missed", "easier", "grows"),
    [
        (THE_OTHER_WAY, {}, A, A),
        (LIKE_THE_CLAIM, {("attention", 25): 6}, N, N),  # an arm that misses the shortest length
        (THE_OTHER_WAY, {("bilstm", 25): 6}, N, N),
        (LIKE_THE_CLAIM, {("attention", 25): 5}, S, U),  # the factor of half of the seeds is unknown
        (LIKE_THE_CLAIM, {("bilstm", 25): 5}, S, U),
        (LIKE_THE_CLAIM, {("attention", 200): 5}, S, S),
        (LIKE_THE_CLAIM, {("attention", 200): 6}, U, S),
        (LIKE_THE_CLAIM, {("attention", 200): 10}, N, S),  # neither learns it
        # Both miss at T = 100: either may have the larger factor, so such a seed counts against either verdict
        (LIKE_THE_CLAIM, {("attention", 100): 1}, S, S),
        (LIKE_THE_CLAIM, {("attention", 100): 2}, S, U),
        (LIKE_THE_CLAIM, {("attention", 100): 10}, S, N),
        (THE_OTHER_WAY, {("bilstm", 100): 1, ("attention", 100): 10}, A, A),
        (THE_OTHER_WAY, {("bilstm", 100): 2, ("attention", 100): 10}, A, U),
        ({"attention": FAST, "bilstm": FAST}, {}, U, N),  # equal factors have no order
    ],
)
def test_the_verdicts(steps, missed, easier, grows):
    result = outcome(steps, missed)
    assert (set(verdicts(result, EASIER)), set(verdicts(result, GROWS))) == ({easier}, {grows})


@pytest.mark.parametrize("family", ["attention", "bilstm"])
def test_an_arm_without_runs_at_the_shortest_length_decides_nothing(family):
    rows = rows_like(LIKE_THE_CLAIM)
    result = LONG_RANGE.outcome(rows[~((rows["family"] == family) & (rows["seq_len"] == 25))], Request())
    assert set(verdicts(result)) == {N}


def test_a_run_that_reached_the_threshold_and_ends_above_it_is_a_miss():
    rows = rows_like(LIKE_THE_CLAIM)
    lost = rows["metric"].eq("success") & rows["family"].eq("attention") & rows["seq_len"].eq(200)
    result = LONG_RANGE.outcome(rows.assign(value=rows["value"].mask(lost & rows["trial"].isna(), 0.0)), Request())
    assert set(verdicts(result, EASIER)) == {N}


def test_a_factor_lies_between_bounds_after_a_miss():
    hits = [(25, 0, 100.0), (25, 1, 100.0), (25, 2, MISS), (100, 0, 300.0), (100, 1, MISS), (100, 2, 300.0)]
    runs = pd.DataFrame(hits, columns=["length", "seed", "hit"])
    assert long_range.growths(runs, 2_000) == {0: (3.0, 3.0), 1: (20.0, MISS), 2: (0.0, MISS)}

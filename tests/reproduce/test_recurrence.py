"""Recurrence through time: the verdicts for given successes."""

import pytest

from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.recurrence import LONG, SHORT
from tests.reproduce.conftest import C, N, R, U, outcome_of, verdicts

STUDY = reproductions.get("recurrence")
EVERY = {(block, length): 10 for block in ("plain", "residual", "highway") for length in (SHORT, LONG)}


def measured(cell, successes):
    succeeds = cell.seed - STUDY.version.seen < successes[cell.block, cell.depth]
    reached = {"steps_to_threshold": 300.0} if succeeds else {}
    rate = cell.recipe["rate"]
    return {"final_loss": 0.01 if succeeds else 0.16, "success": float(succeeds), "rate": rate, **reached}


@pytest.mark.parametrize(
    ("successes", "expected"),
    [
        ({("plain", LONG): 0}, [R, R, R]),
        ({("plain", LONG): 10}, [C, R, R]),
        ({("plain", LONG): 2}, [U, R, R]),
        ({("plain", LONG): 0, ("residual", LONG): 1}, [R, C, R]),
        ({("plain", LONG): 0, ("plain", SHORT): 3}, [N, R, R]),  # it cannot learn the task at all
        ({("plain", LONG): 0, ("highway", LONG): 0, ("highway", SHORT): 0}, [R, R, N]),
        ({(block, LONG): 0 for block in ("plain", "residual", "highway")}, [N, C, C]),
    ],
)
def test_the_verdicts(successes, expected):
    result = outcome_of(STUDY, lambda cell: measured(cell, {**EVERY, **successes}))
    assert verdicts(result) == expected
    assert [entry[0] for entry in result.tables[0].entries] == ["10"] * 3 + ["100"] * 3

"""Which learning rate counts, where fresh seeds ran at several."""

import json

import pytest

from highway_bench.frames.results import Results
from tests.rows import cell, frame_of, training


def results_of(*rows):
    return Results(frame_of([row for part in rows for row in part]))


def tuned_run(rate, seed, loss, *, trial=None):
    """A run of highway at a rate that was tuned; it diverged where it has no ``loss``."""
    recipe = {"steps": 400, "optimiser": "sgd", "rate": rate, "own_rate": True}
    base = cell("trainability", "highway", "dense", 10, dataset="digits", recipe=recipe, seed=seed, trial=trial)
    own = {"recipe": json.dumps(recipe), "trial": trial}
    return [row | own for row in training(base, loss, rate=rate)]


def test_a_rate_that_is_not_stable_waits_for_the_next_lower_one():
    """Half of the seeds diverge at a rate of 1; at 0.3, all of them train."""
    tuning = [tuned_run(rate, 1_000, loss, trial=0) for rate, loss in ((1.0, 0.02), (0.3, 0.03))]
    finals = [tuned_run(1.0, seed, None if seed % 2 else 0.02) for seed in range(10)]
    lower = [tuned_run(0.3, seed, 0.03) for seed in range(5)]
    (rung,) = results_of(*tuning, *finals).trainability().to_dict("records")
    assert (rung["verdict"], rung["rate"], rung["k"], rung["n"]) == ("rate", 1.0, 5, 10)
    result = results_of(*tuning, *finals, *lower)
    (rung,) = result.trainability().to_dict("records")
    assert (rung["verdict"], rung["rate"], rung["k"], rung["n"]) == ("trains", 0.3, 5, 5)
    assert len(result.rows["digest"].unique()) == len([*tuning, *finals, *lower])  # what does not count stays in rows
    worse = [tuned_run(0.3, seed, None) for seed in range(5)]
    (rung,) = results_of(*tuning, *finals, *worse).trainability().to_dict("records")
    assert (rung["verdict"], rung["rate"], rung["k"], rung["n"]) == ("diverges", 1.0, 5, 10)


def test_the_runs_at_one_rate_count():
    """Ten runs at one rate, of which one failed; then the connection is tuned again, and five run at another."""
    rows = []
    for rate, seeds, day in ((0.03, range(10), 1), (0.01, range(5), 2)):
        recipe = {"steps": 400, "optimiser": "sgd", "rate": rate, "own_rate": True}
        for seed in seeds:
            base = cell("trainability", "plain", "dense", 10, dataset="digits", recipe=recipe, seed=seed)
            own = {"recipe": json.dumps(recipe), "time_utc": f"2026-01-0{day}"}
            own |= {"status": "timeout"} if (rate, seed) == (0.03, 3) else {}
            rows += [row | own for row in training(base, rate, rate=rate)]
    for ordered in (rows, rows[::-1]):
        (rung,) = results_of(ordered).trainability().to_dict("records")
        assert (rung["rate"], rung["final_loss"], rung["seeds"]) == (0.01, pytest.approx(0.01), list(range(5)))
        assert rung["unfinished"] == 0
    asked_again = {"run-2": {"started": "2026-01-03", "digests": [row["digest"] for row in rows[:1]]}}
    (rung,) = Results(frame_of(rows), asked_again).trainability().to_dict("records")
    assert rung["rate"] == 0.03
    failed = [row | {"status": "oom"} if row["time_utc"] == "2026-01-02" else row for row in rows]
    (rung,) = results_of(failed).trainability().to_dict("records")
    assert rung["n"] == 9

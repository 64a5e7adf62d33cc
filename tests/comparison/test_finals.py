"""Which rows are finals."""

import json
import math

from highway_bench.studies.comparison.finals import finals
from tests.rows import cell, frame_of, training


def final(seed=0, rate=0.1, loss=0.1, **values):
    """The rows of one training."""
    recipe = {"steps": 4, "rate": rate, "own_rate": True, **values.pop("recipe", {})}
    common = {"dataset": "digits", "start": "published", "seed": seed, "recipe": recipe}
    task = values.pop("task", "trainability")
    return [row | values for row in training(cell(task, "highway", "dense", 10, **common), loss, rate=rate)]


def frame(*trainings):
    return frame_of([one for rows in trainings for one in rows])


def test_finals_are_trainings_of_this_protocol_at_a_tuned_rate_with_fresh_seeds():
    table = finals(
        frame(
            final(0),
            final(1, loss=None),
            final(2, protocol=None),
            final(3, recipe={"own_rate": False}),
            final(1_000, trial=0),  # of the tuning
            final(5, status="oom"),
            final(7, task="gates"),
        )
    )
    assert sorted(table["seed"]) == [0, 1]
    assert math.isnan(table.set_index("seed")["loss"][1])
    assert set(table["block"]) == {"highway · published"}
    assert "rate" not in json.loads(table["recipe"].iloc[0])


def test_the_newest_rate_and_the_newest_run_of_a_seed_count():
    table = finals(
        frame(
            final(0, rate=0.3),
            final(0, loss=0.5, time_utc="2026-01-03"),
            final(0, loss=0.15, time_utc="2026-01-04", machine="another"),
            final(1, time_utc="2026-01-03"),
        )
    )
    assert list(zip(table["rate"], table["seed"], table["loss"], strict=True)) == [(0.1, 0, 0.15), (0.1, 1, 0.1)]
    assert table["machine"].iloc[0] == "another"

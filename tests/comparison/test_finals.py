"""Which rows are finals."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd

from highway_bench.comparison.finals import finals
from highway_bench.results import COLUMNS, Row, row


def training(seed: int = 0, rate: float = 0.1, loss: float | None = 0.1, **values: Any) -> list[Row]:
    """The rows of one training."""
    common = {
        "task": "trainability",
        "block": "highway",
        "block_options": "{}",
        "family": "dense",
        "family_options": "{}",
        "start": "published",
        "match": "params",
        "nominal_width": 8,
        "depth": 10,
        "batch_size": 32,
        "dataset": "digits",
        "dtype": "float32",
        "device": "cpu",
        "seed": seed,
        "status": "ok" if loss is not None else "diverged",
        "time_utc": "2026-01-01",
        "recipe": json.dumps({"steps": 4, "rate": rate, "own_rate": True, **values.pop("recipe", {})}),
    } | values
    success = float(loss is not None and loss <= 0.2)
    return [row(**common, metric="final_loss", value=loss), row(**common, metric="success", value=success)]


def frame(*trainings: list[Row]) -> pd.DataFrame:
    return pd.DataFrame([one for rows in trainings for one in rows], columns=list(COLUMNS))


def test_finals_are_trainings_of_this_protocol_at_a_tuned_rate_with_fresh_seeds() -> None:
    table = finals(
        frame(
            training(0),
            training(1, loss=None),
            training(2, protocol=None),
            training(3, recipe={"own_rate": False}),
            training(1_000, trial=0),  # of the tuning
            training(5, status="oom"),
            training(7, task="gates"),
        )
    )
    assert sorted(table["seed"]) == [0, 1]
    assert math.isnan(table.set_index("seed")["loss"][1])
    assert set(table["block"]) == {"highway · published"}
    assert "rate" not in json.loads(table["recipe"].iloc[0])


def test_the_newest_rate_and_the_newest_run_of_a_seed_count() -> None:
    table = finals(
        frame(
            training(0, rate=0.3),
            training(0, loss=0.5, time_utc="2026-01-02"),
            training(0, loss=0.15, time_utc="2026-01-03", machine="another"),
            training(1, time_utc="2026-01-02"),
        )
    )
    assert list(zip(table["rate"], table["seed"], table["loss"], strict=True)) == [(0.1, 0, 0.15), (0.1, 1, 0.1)]
    assert table["machine"].iloc[0] == "another"

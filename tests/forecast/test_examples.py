"""Examples: which runs count, what is joined to them, and the starts that are still to be measured."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest

from highway_bench.forecast.examples import LARGEST, connection, decades, examples, loss_fall
from highway_bench.forecast.starts import lacking_starts
from highway_bench.tasks import tasks


def test_a_run_has_the_numbers_of_its_start_and_of_its_first_steps(skilled: pd.DataFrame) -> None:
    table = examples(skilled)
    assert len(table) == 864
    first = table.iloc[0]
    ratio = skilled.loc[(skilled["metric"] == "gradient_ratio"), "value"].iloc[0]
    assert first["gradient_decades"] == pytest.approx(-math.log10(ratio))
    assert first["log_depth"] == pytest.approx(math.log(5))
    assert first["depth_scales"] == 0
    assert math.isnan(first["stream_change"])
    assert table["loss_fall"].between(0, 2).all()


def test_runs_at_other_rates_do_not_count(skilled: pd.DataFrame) -> None:
    other = skilled[(skilled["task"] == "trainability") & (skilled["seed"] == 0)].copy()
    other["digest"] += "/other"
    other["seed"] = 1_000
    other["recipe"] = json.dumps({"steps": 400, "rate": 0.3})
    other.loc[other["metric"] == "rate", "value"] = 0.3
    other.loc[other["metric"] == "success", "value"] = 0.0
    assert len(examples(pd.concat([skilled, other], ignore_index=True))) == 864


def test_the_fall_of_the_loss_is_read_between_the_points_of_its_curve() -> None:
    assert loss_fall([8, 48, 56], [2.0, 1.0, 0.5]) == pytest.approx(math.log(2) + math.log(2) / 4)
    assert loss_fall([1, 7], [2.0, 4.0]) == pytest.approx(-math.log(2))  # it diverged at step 8
    assert math.isnan(loss_fall([], []))


def test_sizes_beyond_all_bounds_count_as_the_largest() -> None:
    assert list(decades(pd.Series([1e-3, 1e3, 0.0, math.nan]))) == [3, 3, LARGEST, LARGEST]


def test_variants_are_one_connection() -> None:
    assert connection("mhc") == connection("mhc-lite") == connection("hc-identity")
    assert connection("pre-norm") != connection("post-norm")
    assert connection("of-a-plug-in") == "of-a-plug-in"


def test_starts_that_are_lacking_become_cells(skilled: pd.DataFrame) -> None:
    assert lacking_starts(skilled) == []
    lacking = (skilled["task"] == "propagation") & (skilled["block"] == "gate-3") & (skilled["depth"] == 20)
    cells = lacking_starts(skilled[~lacking])
    assert {(cell.block, cell.depth, cell.dataset, cell.dtype) for cell in cells} == {
        ("gate-3", 20, "digits", "float64")
    }
    assert len(cells) == 12  # six families, two seeds
    known = [cell.but(block="highway", family="dense") for cell in cells]
    for cell in known:
        tasks.get("propagation").check(cell)

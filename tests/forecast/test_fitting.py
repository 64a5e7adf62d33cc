"""The forecast: result where there is skill, none where there is none, falling in depth."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pytest

from highway_bench.errors import BadInput
from highway_bench.forecast import Forecast, NoSkill, fit, fit_from
from highway_bench.forecast.page import calibration_picture, verdict_text, write_forecast
from highway_bench.results import Store
from highway_bench.results.parquet import write_parquet


@pytest.fixture(scope="module")
def forecast(skilled: pd.DataFrame) -> Forecast:
    result = fit(skilled)
    assert isinstance(result, Forecast), result
    return result


def test_skill_is_found_where_the_start_decides(forecast: Forecast) -> None:
    assert [(skill.left_out, skill.against) for skill in forecast.validation.skills] == [
        ("connection", "base rate"),
        ("connection", "depth alone"),
        ("family", "base rate"),
        ("family", "depth alone"),
    ]
    assert all(0 < skill.score.low <= skill.score.value <= skill.score.high for skill in forecast.validation.skills)
    weights = dict(zip(("depth", "gradient"), forecast.model.weights, strict=False))
    assert weights["gradient"] < -0.5


def test_it_falls_in_depth_and_takes_what_is_known(forecast: Forecast) -> None:
    depths = [forecast.probability({"log_depth": depth, "depth_scales": depth}) for depth in (1, 2, 3, 4, 5)]
    assert depths == sorted(depths, reverse=True)
    healthy, vanishing = (forecast.probability({"log_depth": 3, "gradient_decades": one}) for one in (0, 6))
    assert 0 < vanishing < healthy < 1
    assert forecast.probability({}) == forecast.probability({"log_depth": None})


def test_its_forecasts_of_left_out_connections_are_calibrated(forecast: Forecast) -> None:
    bins = forecast.validation.calibration
    assert sum(one.n for one in bins) == forecast.validation.runs
    assert all(one.low - 0.1 <= one.forecast <= one.high + 0.1 for one in bins)


def test_there_is_none_for_shuffled_outcomes(shuffled: pd.DataFrame) -> None:
    result = fit(shuffled)
    assert isinstance(result, NoSkill)
    assert result.validation is not None
    assert " of 4 skills are not surely above 0 (the lowest, against the " in result.reason


def test_there_is_none_where_the_depth_says_it_all(depth_decides: pd.DataFrame) -> None:
    result = fit(depth_decides)
    assert isinstance(result, NoSkill)
    assert "depth alone" in result.reason


def test_too_few_rows_have_no_forecast(skilled: pd.DataFrame) -> None:
    assert fit(skilled[skilled["task"] == "propagation"]) == NoSkill("no training run has a measured start")
    assert fit(skilled[skilled["task"] == "trainability"]) == NoSkill("no training run has a measured start")
    (few,) = (fit(skilled[skilled["block"].isin(["gate-0", "gate-1"])]),)
    assert few == NoSkill("runs of 5 connections are needed, and the rows have those of 2")
    one = fit(skilled[skilled["family"] == "family-0"])
    assert one == NoSkill("runs of 2 families are needed, and the rows have those of 1")


def test_rows_of_a_store_or_of_a_folder(skilled: pd.DataFrame, tmp_path: Path) -> None:
    few = skilled[skilled["block"].isin(["gate-0", "gate-1"])]
    rows = few.astype(object).where(few.notna(), None).to_dict("records")
    write_parquet(rows, {}, tmp_path / "some.parquet")
    assert fit_from(tmp_path) == fit(few)
    with Store(tmp_path / "some.sqlite") as store:
        for digest, same in itertools.groupby(rows, key=lambda row: row["digest"]):
            store.put(digest, list(same))
    assert fit_from(tmp_path / "some.sqlite") == fit(few)
    with pytest.raises(BadInput):
        fit_from(tmp_path / "none.sqlite")


def test_runs_are_forecast_by_digest(forecast: Forecast, skilled: pd.DataFrame) -> None:
    foreseen = forecast.of_runs(skilled)
    assert set(foreseen) == set(skilled.loc[skilled["task"] == "trainability", "digest"])
    shallow, deep = ([p for key, p in foreseen.items() if f"/{depth}/" in key] for depth in (5, 40))
    assert 0 < sum(deep) / len(deep) < sum(shallow) / len(shallow) < 1


def test_page_and_figure(forecast: Forecast, shuffled: pd.DataFrame, tmp_path: Path) -> None:
    written = write_forecast(forecast, tmp_path / "some")
    text = written.page.read_text(encoding="utf-8")
    assert text.startswith("There is a forecast, fitted on 864 runs.")
    assert "| one family | depth alone |" in text
    assert "| ln depth |" in text
    assert written.figure is not None
    assert "<svg" in written.figure.read_text(encoding="utf-8")
    assert len(calibration_picture(forecast.validation).alt) > 40
    none = fit(shuffled)
    assert verdict_text(none).startswith("There is no forecast: 4 of 4 skills are not surely above 0 ")
    assert "| ln depth |" not in write_forecast(none, tmp_path / "none").page.read_text(encoding="utf-8")
    assert write_forecast(NoSkill("too few"), tmp_path / "few").figure is None

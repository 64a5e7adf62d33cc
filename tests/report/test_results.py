"""The model of a report: tables computed once, with units, described by the runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import highway_bench as hb
from highway_bench.cell import Cell
from highway_bench.frames import costs as step_times
from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.results import Results
from highway_bench.report.figures import NothingToShow, every_figure
from highway_bench.results.store import Store

Make = dict[str, Callable[..., Any]]
TABLES = (
    "counts",
    "failures",
    "first_steps",
    "frontier",
    "gates",
    "memory",
    "propagation",
    "ratios",
    "starts",
    "step_times",
    "trainability",
    "trained_layers",
    "trained_networks",
    "training_runs",
    "trials",
)


@pytest.mark.parametrize("name", TABLES)
def test_every_column_of_numbers_has_a_unit(name: str, results: Results) -> None:
    table = getattr(results, name)()
    numbers = [
        column
        for column in table
        if pd.api.types.is_numeric_dtype(table[column]) and not pd.api.types.is_bool_dtype(table[column])
    ]
    assert set(table.attrs["units"]) == set(numbers)


def test_units_are_those_of_the_metrics(results: Results) -> None:
    assert {name: results.ratios().attrs["units"][name] for name in ("step_time", "step_low", "ratio", "depth")} == {
        "step_time": "s",
        "step_low": "s",
        "ratio": "1",
        "depth": "layer",
    }
    assert results.memory().attrs["units"]["parameter_bytes"] == "B"
    assert results.counts().attrs["units"]["parameters"] == "1"
    assert results.frontier().attrs["units"]["l50_low"] == "layer"
    assert results.trainability().attrs["units"]["loss_high"] == "nat"


def test_a_table_is_computed_once_and_a_caller_s_change_stays_the_caller_s(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    compute = step_times.step_times
    monkeypatch.setattr(step_times, "step_times", lambda *given: calls.append(given) or compute(*given))
    results = Results(make["frame"](make["whole"](("plain", "highway"), families=("dense",))))
    results.ratios()
    table = results.step_times()
    table["ratio"] = 0.0
    assert len(calls) == 1
    assert (results.step_times()["ratio"] > 0).any()


def test_results_of_a_store_and_of_its_rows_are_the_same(make: Make, tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        for row in make["memory"](make["cell"]("memory", "plain", "dense", 4), 10.0)[:1]:
            store.put(row["digest"], [row])
        opened, given = hb.open_results(store), hb.Results(store.frame())
    again = hb.open_results(tmp_path / "store.sqlite")
    for results in (opened, again):
        pd.testing.assert_frame_equal(results.memory(), given.memory())


def test_what_the_registries_declare_travels_with_a_run() -> None:
    pytest.importorskip("torch", reason="registries of blocks need torch; nox -s torch-free has none")
    from highway_bench.execution.descriptions import descriptions

    cells = [
        Cell(task=task, block="plain", family="dense", depth=2, width=8, nominal_width=8, dataset=dataset)
        for task, dataset in (("memory", None), ("gates", "mnist-5k"))
    ]
    said = descriptions(cells)
    assert said["blocks"]["plain"]["baseline"] is True
    assert said["families"]["dense"]["kind"] == "vector"
    assert said["datasets"]["mnist-5k"]["chance_loss"] == pytest.approx(math.log(10))
    assert said["tasks"]["gates"]["metrics"]["lesion_loss"]["unit"] == "nat"
    about = Descriptions({"run-1": said})
    assert about.baseline == "plain"
    assert about.chance_loss("mnist-5k") == pytest.approx(math.log(10))
    assert math.isnan(about.chance_loss("my-data"))
    assert about.metric("gates", "lesion_loss").unit == "nat"


def test_the_runs_descriptions_decide_order_labels_and_branches() -> None:
    about = Descriptions(
        {
            "old": {"blocks": {"late": {"order": 1}, "early": {"order": 9}}},
            "new": {
                "blocks": {"early": {"order": 0}, "mine": {"baseline": True, "order": 2}},
                "families": {"my-pair": {"branch_of": "mine"}},
                "tasks": {
                    "heat": {
                        "metrics": {"warmth": {"unit": "K", "label": "how warm", "hint": "inside", "percent": False}},
                    }
                },
            },
        }
    )
    assert about.block_order(["zeta", "mine", "late", "early init=he", "early"]) == [
        "early",
        "early init=he",
        "late",
        "mine",
        "zeta",
    ]
    assert about.baseline == "mine"
    label = about.metric("heat", "warmth")
    assert (label.heading, label.hint, label.unit, label.percent) == ("how warm", "inside", "K", False)
    assert about.metric("gates", "gates_shut").percent


def test_figures_of_one_family_and_two_recipes_have_titles_of_their_own(make: Make) -> None:
    rows = make["whole"](("plain", "highway"), families=("dense",))
    ladder = [row for row in rows if row["task"] == "trainability"]
    longer = [row | {"recipe": row["recipe"].replace('"steps":500', '"steps":900')} for row in ladder]
    longer = [row | {"digest": f"{row['digest']}/900"} for row in longer]
    results = Results(make["frame"]([*rows, *longer]))
    for kind in every_figure():
        try:
            pictures = kind.draw(results)
        except NothingToShow:
            continue
        titles = [picture.title for picture in pictures]
        assert len(set(titles)) == len(titles), kind.name

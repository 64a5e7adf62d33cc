"""The model of a report: tables computed once, with units, described by the runs."""

import math

import pytest

from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.results import Results
from tests.inline_engine import cell_of

RETURNS = {name: getattr(method, "__annotations__", {}).get("return") for name, method in vars(Results).items()}
WITH_ARGUMENTS = ("layer_sizes", "of_task", "with_units")
TABLES = [name for name, kind in RETURNS.items() if kind == "pd.DataFrame" and name not in WITH_ARGUMENTS]


@pytest.mark.parametrize("name", TABLES)
def test_every_column_of_numbers_has_a_unit(name, results):
    table = getattr(results, name)()
    assert set(table.attrs["units"]) == set(table.select_dtypes("number"))


def test_what_the_registries_declare_travels_with_a_run():
    pytest.importorskip("torch", reason="registries of blocks need torch; which reading results does not")
    from highway_bench.execution.record import descriptions

    cells = [cell_of(task, dataset=dataset) for task, dataset in (("memory", None), ("gates", "mnist-5k"))]
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


def test_the_runs_descriptions_decide_order_labels_and_branches():
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

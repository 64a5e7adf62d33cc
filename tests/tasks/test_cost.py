"""Cost: counts without computing, and the same as of the network that is really built."""

from __future__ import annotations

import pytest
import torch

from highway_bench.cell import Cell
from highway_bench.data.copy_memory import CopyMemory
from highway_bench.families import families
from highway_bench.families.parts import count_parameters
from highway_bench.tasks import tasks
from highway_bench.tasks.architecture_network import cell_network

COST = tasks.get("cost")


def counted(**cell: object) -> dict[str, float]:
    one = Cell(
        **{
            "task": "cost",
            "block": "highway",
            "family": "dense",
            "depth": 1,
            "width": 50,  # type: ignore[arg-type]
            "nominal_width": 50,
            **cell,
        }
    )
    (outcome,) = COST.measure([one])
    assert outcome.error is None
    result = {measurement.metric: measurement.value for measurement in outcome.measurements}
    assert (outcome.params, outcome.flops_per_item) == (result["parameters"], 2 * (result["multiply_adds"] or 0))
    return result  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("cell", "parameters", "multiply_adds"),
    [
        ({}, 5_100, 5_000),
        ({"block": "plain", "width": 71}, 5_112, 5_041),
        ({"depth": 9, "dataset": "mnist-5k"}, 85_660, 84_700),
        ({"depth": 20, "width": 784, "dataset": "mnist-5k", "recipe": {"layout": "stemless"}}, 24_625_450, 24_594_080),
        (
            {"block": "plain", "family": "conv", "depth": 12, "width": 64, "recipe": {"layout": "vgg"}},
            143_667_240,
            19_632_062_464,
        ),
    ],
)
def test_known_counts(cell: dict[str, object], parameters: int, multiply_adds: int) -> None:
    assert counted(**cell) == {"parameters": parameters, "multiply_adds": multiply_adds}


@pytest.mark.parametrize("family", families.names())
@pytest.mark.parametrize("dataset", [None, "digits"])
def test_the_network_that_is_built_has_as_many(family: str, dataset: str | None) -> None:
    cell = Cell(task="cost", block="highway", family=family, depth=2, width=8, nominal_width=8, dataset=dataset)
    assert counted(family=family, depth=2, width=8, dataset=dataset)["parameters"] == count_parameters(
        cell_network(cell)
    )


def test_data_are_first_read_into_tensors_with_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set caches what it loads for its vocabulary; training reads the same tensors later."""
    devices: list[str] = []

    def vocabulary(_: CopyMemory) -> int:
        devices.append(torch.zeros(1).device.type)
        return 11

    monkeypatch.setattr(CopyMemory, "vocabulary", property(vocabulary))
    counted(family="bilstm", dataset="copy", width=8)
    assert devices[0] == "cpu"


def test_tokens_without_storage_have_no_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopyMemory, "padded", True)
    assert counted(family="attention", dataset="copy", width=8)["multiply_adds"] > 0

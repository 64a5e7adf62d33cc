"""Cost: counts without computing, and the same as of the network that is really built."""

import pytest
import torch

from highway_bench.data.copy_memory import CopyMemory
from highway_bench.families import families
from highway_bench.families.parts import count_parameters
from highway_bench.tasks import tasks
from highway_bench.tasks.architecture_network import cell_network
from tests.cells import cell, scalars

COST = tasks.get("cost")


def counted(block="highway", family="dense", **fields):
    (outcome,) = COST.measure([cell("cost", block, family, **fields)])
    assert outcome.error is None
    result = scalars(outcome.measurements)
    assert (outcome.params, outcome.flops_per_item) == (result["parameters"], 2 * result["multiply_adds"])
    return result


@pytest.mark.parametrize(
    ("fields", "parameters", "multiply_adds"),
    [
        ({"depth": 1, "width": 50}, 5_100, 5_000),
        ({"block": "plain", "depth": 1, "width": 71}, 5_112, 5_041),
        ({"depth": 9, "width": 50, "dataset": "mnist-5k"}, 85_660, 84_700),
        ({"depth": 20, "width": 784, "dataset": "mnist-5k", "layout": "stemless"}, 24_625_450, 24_594_080),
        (
            {"block": "plain", "family": "conv", "depth": 12, "width": 64, "layout": "vgg"},
            143_667_240,
            19_632_062_464,
        ),
    ],
)
def test_known_counts(fields, parameters, multiply_adds):
    assert counted(**fields) == {"parameters": parameters, "multiply_adds": multiply_adds}


@pytest.mark.parametrize("family", families.names())
@pytest.mark.parametrize("dataset", [None, "digits"])
def test_the_network_that_is_built_has_as_many(family, dataset):
    network = cell_network(cell("cost", family=family, dataset=dataset))
    assert counted(family=family, dataset=dataset)["parameters"] == count_parameters(network)


def test_data_are_first_read_into_tensors_with_storage(monkeypatch):
    """A data set caches what it loads for its vocabulary; training reads the same tensors later."""
    devices = []

    def vocabulary(_):
        devices.append(torch.zeros(1).device.type)
        return 11

    monkeypatch.setattr(CopyMemory, "vocabulary", property(vocabulary))
    counted(family="bilstm", dataset="copy")
    assert devices[0] == "cpu"


def test_tokens_without_storage_have_no_padding(monkeypatch):
    monkeypatch.setattr(CopyMemory, "padded", True)
    assert counted(family="attention", dataset="copy")["multiply_adds"] > 0

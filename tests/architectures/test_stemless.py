"""The lecture's network: its size, its shapes, and what it refuses."""

import pytest
import torch

from highway_bench.architectures import architectures
from highway_bench.cell import Cell
from highway_bench.errors import BadInput, UnknownName
from highway_bench.execution.key import modules_of
from highway_bench.families import make_family
from highway_bench.families.parts import count_parameters
from highway_bench.stem_head import Incompatible
from highway_bench.tasks import Skip
from highway_bench.tasks.architecture_network import cell_network

STEMLESS = architectures.get("stemless")


def test_the_lectures_parameters() -> None:
    with torch.device("meta"):
        network = STEMLESS.build("highway", make_family("dense"), width=784, depth=20)
    assert count_parameters(network) == 24_625_450


def test_pixels_in_classes_out_and_a_seed_that_stays_inside() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, again = (STEMLESS.build("plain", make_family("dense"), width=784, depth=1, seed=5) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)
    x = torch.randn(2, 1, 28, 28)
    assert first(x).shape == (2, 10)
    assert torch.equal(first(x), again(x))


def test_only_as_wide_as_its_inputs_and_only_vectors() -> None:
    with pytest.raises(BadInput, match="784"):
        STEMLESS.build("highway", make_family("dense"), width=50, depth=2)
    with pytest.raises(Incompatible, match="'conv' on inputs"):
        STEMLESS.build("highway", make_family("conv"), width=784, depth=2)
    with pytest.raises(Incompatible, match="'dense' on inputs of shape"):
        STEMLESS.build("highway", make_family("dense"), width=8, depth=2, inputs=(4, 2))


def test_a_cell_names_its_architecture() -> None:
    cell = Cell(
        task="trainability",
        block="highway",
        family="dense",
        depth=1,
        width=784,
        nominal_width=784,
        dataset="mnist",
        recipe={"layout": "stemless"},
    )
    assert type(cell_network(cell)[0]) is torch.nn.Flatten
    assert "highway_bench.architectures.stemless" in modules_of(cell)
    with pytest.raises(Skip, match="takes families of vectors on images, not 'conv'"):
        cell_network(cell.but(family="conv"))
    with pytest.raises(UnknownName, match="architecture"):
        cell_network(cell.but(recipe={"layout": "stemles"}))

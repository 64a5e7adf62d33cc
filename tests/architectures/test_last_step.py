"""An answer at the last step: its shapes, and what it can have seen."""

from __future__ import annotations

import pytest
import torch

from highway_bench.architectures import architectures
from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.key import modules_of
from highway_bench.families import make_family
from highway_bench.families.parts import count_parameters
from highway_bench.stem_head import Incompatible
from highway_bench.tasks.architecture_network import cell_network

ARCHITECTURE = architectures.get("last-step")


@pytest.mark.parametrize("family", ["bilstm", "attention", "transformer"])
def test_one_answer_an_item_and_every_step_seen(family: str) -> None:
    network = ARCHITECTURE.build("highway", make_family(family), width=8, depth=2, inputs=(7, 2), seed=1)
    x = torch.randn(3, 7, 2, requires_grad=True)
    answers = network(x)
    assert answers.shape == (3,)
    (gradient,) = torch.autograd.grad(answers.sum(), x)
    assert gradient.abs().amin(-1).gt(0).all()


def test_the_backward_direction_has_seen_the_last_step_alone() -> None:
    network = ARCHITECTURE.build("plain", make_family("bilstm"), width=8, depth=1, inputs=(7, 2), seed=1)
    backward = network[1].joins[0](network[0](x := torch.randn(3, 7, 2, requires_grad=True)))[:, -1, 4:]
    (gradient,) = torch.autograd.grad(backward.sum(), x)
    assert gradient[:, -1].any()
    assert not gradient[:, :-1].any()


def test_parameters_and_several_outputs() -> None:
    network = ARCHITECTURE.build("plain", make_family("bilstm"), width=8, depth=2, inputs=(7, 3), outputs=4, seed=1)
    assert count_parameters(network) == (3 * 8 + 8) + 2 * 2 * 4 * (4 * 8 + 4 * 4 + 2 * 4) + (8 * 4 + 4)
    assert network(torch.randn(2, 7, 3)).shape == (2, 4)


def test_a_cell_names_it() -> None:
    cell = Cell(
        task="trainability",
        block="plain",
        family="bilstm",
        depth=1,
        width=8,
        nominal_width=8,
        dataset="adding",
        seq_len=6,
        recipe={"layout": "last-step"},
    )
    assert cell_network(cell)(torch.randn(2, 6, 2)).shape == (2,)
    assert "highway_bench.architectures.last_step" in modules_of(cell)


def test_what_it_refuses() -> None:
    with pytest.raises(Incompatible, match="dense"):
        ARCHITECTURE.build("plain", make_family("dense"), width=8, depth=2)
    with pytest.raises(BadInput, match="depth must be at least 1"):
        ARCHITECTURE.build("plain", make_family("bilstm"), width=8, depth=0)

"""The bidirectional LSTM and its highway block; regression tests of the faults of a public implementation."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from highway_bench.blocks import blocks
from highway_bench.families import make_family
from highway_bench.network import Stack, build

WIDTH = 6


def stack_of(block: str, depth: int = 2) -> Stack:
    return cast(Stack, build(block, "bilstm", width=WIDTH, depth=depth, seed=1))


def test_parameters_of_the_published_size() -> None:
    """300 wide: two directions of 150 with two bias vectors each, and a gate."""
    family = make_family("bilstm")
    plain, highway = blocks.get("plain"), blocks.get("highway")
    assert plain.layer_parameters(family, 300) == 542_400
    assert highway.layer_parameters(family, 300) == 542_400 + 90_300
    assert sum(p.numel() for p in build("highway", family, width=300, depth=1).parameters()) == 632_700


def test_against_a_cell_stepped_by_hand() -> None:
    """Both directions from zero states, forwards first in the features."""
    stack = stack_of("plain", depth=1).double()
    lstm = stack.joins[0].transform.lstm
    x = torch.randn(2, 5, WIDTH, dtype=torch.float64)

    def read(steps: list[int], suffix: str) -> Tensor:
        hidden = cell = torch.zeros(2, WIDTH // 2, dtype=torch.float64)
        states: dict[int, Tensor] = {}
        for step in steps:
            sums = (
                x[:, step] @ getattr(lstm, f"weight_ih_l0{suffix}").T
                + getattr(lstm, f"bias_ih_l0{suffix}")
                + hidden @ getattr(lstm, f"weight_hh_l0{suffix}").T
                + getattr(lstm, f"bias_hh_l0{suffix}")
            )
            enter, forget, new, leave = sums.chunk(4, dim=-1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(new)
            hidden = torch.sigmoid(leave) * torch.tanh(cell)
            states[step] = hidden
        return torch.stack([states[step] for step in range(5)], dim=1)

    expected = torch.cat([read([0, 1, 2, 3, 4], ""), read([4, 3, 2, 1, 0], "_reverse")], dim=-1)
    torch.testing.assert_close(stack(x), expected, rtol=1e-10, atol=1e-12)


def test_what_is_carried_is_the_input() -> None:
    """Public fault: (1 − T) multiplies the gate's pre-activation instead of x."""
    stack = stack_of("highway", depth=1).double()
    maps = stack.joins[0].maps
    x = torch.randn(2, 5, WIDTH, dtype=torch.float64)
    h = maps.transform.lstm(x)[0]
    before_sigmoid = x @ maps.gate.weight.T + maps.gate.bias
    gate = torch.sigmoid(before_sigmoid)
    torch.testing.assert_close(stack(x), h * gate + x * (1 - gate), rtol=1e-10, atol=1e-12)
    assert not torch.allclose(stack(x), h * gate + before_sigmoid * (1 - gate), atol=1e-3)


def test_every_layer_starts_from_zero_states() -> None:
    """Public fault: a layer's last state starts the next layer, so a shut highway would not be the identity."""
    stack = stack_of("plain", depth=2).double()
    x = torch.randn(2, 5, WIDTH, dtype=torch.float64)
    expected = x
    for layer in stack.joins:
        expected = layer.transform.lstm(expected)[0]
    torch.testing.assert_close(stack(x), expected, rtol=0, atol=0)

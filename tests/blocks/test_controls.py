"""The controls of the shortcut experiment against their equations and limits."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.network import build

FAMILIES = ["dense", "conv-pair", "bilstm", "transformer"]


def two(first: str, second: str, family: str, options: dict[str, Any]) -> tuple[Any, Any, torch.Tensor]:
    """Stacks of two blocks with one seed, and an input for both."""
    stacks = [
        build(block, family, width=8, depth=3, block_options=options if block == second else {}, seed=4).double()
        for block in (first, second)
    ]
    return *stacks, make_family(family).example(3, 8, seq_len=5).double()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("skip", "other"), [(1.0, "residual"), (0.0, "plain")])
def test_constants_of_one_and_nought(family: str, skip: float, other: str) -> None:
    reference, scaled, x = two(other, "scaled", family, {"skip": skip, "branch": 1.0})
    torch.testing.assert_close(scaled(x), reference(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_shortcut_gate_against_its_equation(family: str) -> None:
    stack = build("shortcut-gate", family, width=8, depth=2, seed=1).double()
    x = y = make_family(family).example(3, 8, seq_len=5).double()
    for join in stack.joins:  # type: ignore[union-attr]
        h, t = join.maps(y)
        y = h + (1 - torch.sigmoid(t)) * y
    torch.testing.assert_close(stack(x), y, rtol=1e-12, atol=1e-13)


def test_a_shut_shortcut_gate_is_the_residual_connection_and_an_open_one_plain() -> None:
    for bias, other in ((-40.0, "residual"), (40.0, "plain")):
        gated = build("shortcut-gate", "dense-pair", width=8, depth=2, block_options={"gate_bias": bias}).double()
        reference = build(other, "dense-pair", width=8, depth=2).double()
        for one, join in zip(gated.joins, reference.joins, strict=True):  # type: ignore[arg-type]
            join.transform.load_state_dict(one.maps.transform.state_dict())
            one.maps.gate.weight.data.zero_()
        x = torch.randn(4, 8, dtype=torch.float64)
        torch.testing.assert_close(gated(x), reference(x), rtol=1e-12, atol=1e-12)


def test_controls_say_so() -> None:
    assert all(blocks.get(name).group == "control" for name in ("scaled", "shortcut-gate"))


@pytest.mark.parametrize("value", ["half", True])
def test_a_scale_is_a_number(value: object) -> None:
    with pytest.raises(BadInput, match="skip"):
        build("scaled", "dense", width=4, depth=1, block_options={"skip": value})

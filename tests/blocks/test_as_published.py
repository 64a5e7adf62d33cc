"""The public highway BiLSTM as it was published: a control, which the contract of blocks must refuse."""

from __future__ import annotations

import importlib

import pytest
import torch
from torch import nn

from highway_bench.block_check import check_block
from highway_bench.network import build

WIDTH = 6


@pytest.fixture
def as_published() -> str:
    """Its name. It is registered until the test ends."""
    bilstm = importlib.import_module("highway_bench.published_code.bilstm")
    bilstm.register()
    return str(bilstm.NAME)


def test_the_contract_refuses_it(as_published: str) -> None:
    problems = {one.check: one.problem for one in check_block(as_published, in_families=["bilstm"]) if one.problem}
    assert {"registers once", "is deterministic", "saves state"} <= problems.keys()
    assert "forward creates parameters (Linear.weight), which are never trained" in str(problems["registers once"])


def test_its_gate_gets_no_gradient_step(as_published: str) -> None:
    """An optimiser over all its parameters holds the LSTM's alone, and the gate of the next call is another draw."""
    stack, lstm = (build(name, "bilstm", width=WIDTH, depth=2, seed=1) for name in (as_published, "plain"))
    assert [name for name, _ in stack.named_parameters()] == [name for name, _ in lstm.named_parameters()]
    made: list[nn.Parameter] = []
    handle = nn.modules.module.register_module_parameter_registration_hook(
        lambda module, name, parameter: made.append(parameter) if parameter is not None else None
    )
    try:
        stack(torch.randn(3, 4, WIDTH)).square().sum().backward()
        stack(torch.randn(3, 4, WIDTH))
    finally:
        handle.remove()
    first, second = made[:4], made[4:]  # weight and bias, in two layers
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in first)
    held = {id(parameter) for parameter in stack.parameters()}
    assert not held & {id(parameter) for parameter in made}
    assert not any(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_what_it_carries_is_its_gates_pre_activation(as_published: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shut gate gives −30 in place of the input, and that is what a highway layer rightly gives."""
    stack, highway = (build(name, "bilstm", width=WIDTH, depth=1, seed=1) for name in (as_published, "highway"))
    x = torch.randn(3, 4, WIDTH)
    gate = highway.joins[0].maps.gate
    nn.init.zeros_(gate.weight)
    nn.init.constant_(gate.bias, -30.0)
    monkeypatch.setattr(nn, "Linear", lambda *sizes, **options: gate)
    torch.testing.assert_close(highway(x), x)
    torch.testing.assert_close(stack(x), torch.full_like(x, -30.0))

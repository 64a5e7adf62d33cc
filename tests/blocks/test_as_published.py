"""The public highway BiLSTM as it was published: kept here as a control that the contract must refuse.

Its forward pass makes a new gate at every call, which no optimiser holds, and what the gate does not let through is
replaced by the gate's own pre-activation in place of the layer's input. No profile has it, for it measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from highway_bench.block_check import check_block
from highway_bench.blocks import Block
from highway_bench.families import Site
from highway_bench.network import build

WIDTH = 6


class AsPublished(Block):
    """y = H(x)·σ(a) + a·(1 − σ(a)), a = Wx + b with W and b drawn anew in every call: defective."""

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.transform = site.family.transform(site)
        self.width = site.width

    def forward(self, x: Tensor) -> Tensor:
        a = nn.Linear(self.width, self.width, dtype=x.dtype)(x)
        return torch.lerp(a, self.transform(x), torch.sigmoid(a))


@pytest.fixture
def as_published(registered: Callable[..., str]) -> str:
    """Its name, while a test runs."""
    return registered("bilstm-as-published", AsPublished, gates=1, vmap=False, compile=False)


def test_the_contract_refuses_it(as_published: str) -> None:
    problems = {one.check: one.problem for one in check_block(as_published, in_families=["bilstm"]) if one.problem}
    assert {"counts parameters", "registers once", "is deterministic", "saves state"} <= problems.keys()
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

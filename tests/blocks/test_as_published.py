"""The public highway BiLSTM as it was published: a control, which the contract of blocks must refuse."""

import importlib

import pytest
import torch
from torch import nn

from highway_bench.block_check import check_block
from highway_bench.network import build

WIDTH = 6


@pytest.fixture
def as_published():
    """Its name. It is registered until the test ends."""
    bilstm = importlib.import_module("highway_bench.published_code.bilstm")
    bilstm.register()
    return str(bilstm.NAME)


def test_the_contract_refuses_it(as_published):
    problems = {one.check: one.problem for one in check_block(as_published, in_families=["bilstm"]) if one.problem}
    assert {"registers once", "is deterministic"} <= problems.keys()
    assert "Linear.weight" in str(problems["registers once"])


def test_what_it_carries_is_its_gates_pre_activation(as_published, monkeypatch):
    """A shut gate gives −30 in place of the input, and that is what a highway layer rightly gives."""
    stack, highway = (build(name, "bilstm", width=WIDTH, depth=1, seed=1) for name in (as_published, "highway"))
    x = torch.randn(3, 4, WIDTH)
    gate = highway.joins[0].maps.gate
    nn.init.zeros_(gate.weight)
    nn.init.constant_(gate.bias, -30.0)
    monkeypatch.setattr(nn, "Linear", lambda *sizes, **options: gate)
    torch.testing.assert_close(highway(x), x)
    torch.testing.assert_close(stack(x), torch.full_like(x, -30.0))


def test_the_fault_in_the_carry_alone_has_a_gate_that_is_trained(as_published):
    importlib.import_module("highway_bench.published_code.bilstm_carry").register()
    stack, highway = (build(name, "bilstm", width=WIDTH, depth=1, seed=1) for name in ("bilstm-carry-fault", "highway"))
    assert not [one.problem for one in check_block("bilstm-carry-fault", in_families=["bilstm"]) if one.problem]
    gate = stack.joins[0].maps.gate
    nn.init.zeros_(gate.weight)
    nn.init.constant_(gate.bias, -30.0)
    x = torch.randn(3, 4, WIDTH)
    torch.testing.assert_close(stack(x), torch.full_like(x, -30.0))
    assert sum(map(torch.numel, stack.parameters())) == sum(map(torch.numel, highway.parameters()))

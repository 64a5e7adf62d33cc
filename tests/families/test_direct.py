"""Direct parts: what torch says of a module's parts holds for its attributes too."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from highway_bench.families.parts import DirectParts
from highway_bench.network import build


class Twofold(DirectParts):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(x if self.first is None else self.first(x))


def test_a_part_that_changes_changes_in_both():
    module = Twofold()
    module.second = other = nn.Linear(3, 3)
    assert module.second is module._modules["second"] is other
    module.first = None
    assert module.first is module._modules["first"] is None
    assert module(torch.zeros(2, 3)).shape == (2, 3)
    del module.second
    assert not hasattr(module, "second")
    assert list(module._modules) == ["first"]
    assert dict(module.named_parameters()) == {}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies_have_parts_of_their_own(copied):
    module = build("highway", "dense", width=4, depth=2)
    other = copied(module)
    assert other.joins is other._modules["joins"] is not module.joins
    x = torch.randn(3, 4)
    expected = module(x)
    for parameter in module.parameters():
        parameter.data.zero_()
    torch.testing.assert_close(other(x), expected)


def test_other_parameters_reach_the_parts():
    module, other = (build("plain", "dense", width=4, depth=2, seed=seed) for seed in (1, 2))
    x = torch.randn(3, 4)
    torch.testing.assert_close(functional_call(module, dict(other.named_parameters()), (x,)), other(x))

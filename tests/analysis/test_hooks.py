"""Lesion: which layers can be cut out, and that all is as it was afterwards. Watching leaves nothing behind either."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from highway_bench.analysis.hooks import carried_path, cut_out, forward_hooks


class Adds(nn.Module):
    """y = x + 1, with a carried path."""

    def __init__(self) -> None:
        super().__init__()
        self.carry = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def run(joins, x):
    for join in joins:
        x = join(x)
    return x


def test_a_layer_that_is_cut_out_copies_its_input_and_is_put_back():
    joins = nn.ModuleList([Adds(), Adds(), Adds()])
    before, x = list(joins), torch.randn(4)
    with cut_out(joins, 1):
        assert torch.equal(run(joins, x), (x + 1) + 1)
    assert list(joins) == before
    with pytest.raises(RuntimeError), cut_out(joins, 0):
        raise RuntimeError
    assert list(joins) == before


def test_a_layer_that_carries_nothing_has_no_lesion():
    joins = nn.ModuleList([nn.Linear(2, 2)])
    assert carried_path(joins[0]) is None
    with pytest.raises(ValueError, match="Linear carries nothing"), cut_out(joins, 0):
        pass


def test_watching_tells_of_every_forward_and_ends():
    joins = nn.ModuleList([Adds(), Adds()])
    calls = []
    with forward_hooks({1: joins[0], 2: joins[1]}, lambda key, x, y: calls.append((key, float(x), float(y)))):
        run(joins, torch.tensor(0.0))
    run(joins, torch.tensor(7.0))
    assert calls == [(1, 0.0, 1.0), (2, 1.0, 2.0)]

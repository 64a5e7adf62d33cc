"""Counts of operators, by hand for a layer, and unchanged by load."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from highway_bench.asv_api import workload
from highway_bench.families import families
from highway_bench.measure.operations import Operations, count_operations


def test_a_layer_by_hand() -> None:
    """y = relu(Wx + b) of 3 items from 4 to 5 features, in float32.

    ``addmm`` reads b (5), x (12) and the view Wᵀ (20) and writes 15 numbers; ``relu`` reads and writes 15. The
    transposition of W is a view: a call that starts no kernel.
    """
    layer, x = nn.Sequential(nn.Linear(4, 5), nn.ReLU()), torch.zeros(3, 4)
    with torch.no_grad():
        counts = count_operations(lambda: layer(x))
    assert counts == Operations(operator_calls=3, kernel_launches=2, bytes_moved=4 * (5 + 12 + 20 + 15 + 30))


def test_views_and_allocations_start_no_kernel_and_writes_in_place_do() -> None:
    x = torch.zeros(2, 3)
    counts = count_operations(lambda: (x.view(6), x.t(), torch.empty(7), x.add_(1.0)))
    assert counts == Operations(operator_calls=4, kernel_launches=1, bytes_moved=2 * 24)


@pytest.mark.parametrize("family", families.names())
def test_a_step_has_the_same_counts_every_time_and_more_for_gates(family: str) -> None:
    counts = []
    for block in ("plain", "highway"):
        work = workload("throughput", block, family, 2, 8, batch_size=2, phase="forward-backward")
        first = count_operations(work.step)
        assert count_operations(work.step) == first
        counts.append(first)
    plain, highway = counts
    assert all(more > fewer for more, fewer in zip(highway, plain, strict=True))

"""Depth mixing of a network at its start and after training, on a few items."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
from torch import Tensor, nn

from highway_bench.analysis.mixing import branch_of, depth_mixing
from highway_bench.network import Stack, unpadded_steps
from highway_bench.tasks._layer_values import profiled_layers
from highway_bench.tasks._probe import take_batch_statistics
from highway_bench.tasks.measurement import Measurement
from highway_bench.training.evaluation import device_and_dtype, to_device

ITEMS = 32
MOST = 100  # connections: the time grows with their square


def mixing_measurements(network: nn.Module, inputs: Tensor, when: Literal["start", "end"]) -> Iterator[Measurement]:
    """The rows of the mixing matrix and of the shares by layer. ``samples`` are one row: v₀, then branch by branch.

    Nothing for a network of several stacks or of more than ``MOST`` connections, and for a block without a known
    branch.
    """
    stacks = [part for part in network.modules() if isinstance(part, Stack)]
    if len(stacks) != 1 or len(stacks[0].joins) > MOST or None in map(branch_of, stacks[0].joins):
        return
    batch = to_device(inputs[:ITEMS], *device_and_dtype(network))
    if when == "start":
        take_batch_statistics(network, batch)
    network.eval()
    mixing = depth_mixing(stacks[0], lambda: network(batch), unpadded_steps(network, batch))
    for metric, rows in ((f"mixing_{when}", mixing.weights), (f"mixing_share_{when}", mixing.shares)):
        for layer in profiled_layers(len(rows), 1):
            yield row_measurement(metric, rows[layer - 1], layer)


def row_measurement(metric: str, row: list[float], layer: int) -> Measurement:
    """One row of a matrix as samples; numbers that are not finite become null, without failing the cell."""
    finite = [value for value in row if math.isfinite(value)]
    low, middle, high = np.quantile(finite, (0.1, 0.5, 0.9)).tolist() if finite else (None, None, None)
    samples = [value if math.isfinite(value) else None for value in row]
    return Measurement(metric=metric, value=middle, low=low, high=high, samples=samples, axis="layer", index=layer)

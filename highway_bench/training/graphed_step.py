"""Graphed step: a training step of fixed shapes as a CUDA graph. Its thousands of small kernels cost one launch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from highway_bench.measure.device import on_side_stream

WARM_UP = 3  # eager steps before one is captured, as torch's own examples have


class GraphedStep:
    """``step(rows)`` on a CUDA device: the first calls run eagerly, one call captures the graph, later calls replay it.

    Every call is exactly one step; the capture itself computes nothing. ``step`` must not wait for the device, and only
    its result may be used outside. The next call overwrites that result.
    """

    def __init__(self, step: Callable[[Tensor], Tensor], rows: Tensor) -> None:
        self._step = step
        self._rows = torch.empty_like(rows)
        self._eager_steps = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result = torch.empty(0)

    def __call__(self, rows: Tensor) -> Tensor:
        self._rows.copy_(rows)
        if self._graph is None and self._eager_steps < WARM_UP:
            self._result = on_side_stream(lambda: self._step(self._rows), rows.device)
            self._eager_steps += 1
        elif self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._result = self._step(self._rows)
            self._graph.replay()
        else:
            self._graph.replay()
        return self._result

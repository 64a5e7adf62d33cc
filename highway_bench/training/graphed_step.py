"""A step of fixed shapes as a CUDA graph, so that its thousands of small kernels cost one launch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

WARM = 3  # steps run as they are before one is recorded, by when libraries have set themselves up


class GraphedStep:
    """``step(rows)`` on a CUDA device: run as it is at first, then recorded, then replayed.

    Every call is one real step, those before the recording included; the recording itself computes nothing. ``step``
    must neither wait for the device nor hand out anything but its result, which the next call overwrites.
    """

    def __init__(self, step: Callable[[Tensor], Tensor], rows: Tensor) -> None:
        self._step = step
        self._rows = torch.empty_like(rows)
        self._ran = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result = torch.empty(0)

    def __call__(self, rows: Tensor) -> Tensor:
        self._rows.copy_(rows)
        if self._graph is None and self._ran < WARM:
            self._result = self._beside()
            self._ran += 1
        elif self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._result = self._step(self._rows)
            self._graph.replay()
        else:
            self._graph.replay()
        return self._result

    def _beside(self) -> Tensor:
        """The step on a stream of its own, as one that is to be recorded must have run."""
        side, main = torch.cuda.Stream(), torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            result = self._step(self._rows)
        main.wait_stream(side)
        return result

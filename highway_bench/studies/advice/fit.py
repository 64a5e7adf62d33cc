"""Fit: whether networks of this depth fit memory, from measured shallow networks."""

from __future__ import annotations

from dataclasses import dataclass

from highway_bench.errors import BadInput
from highway_bench.provenance.free_memory import PROCESS_BYTES, gib, usable_bytes
from highway_bench.studies.advice.request import AdviceRequest
from highway_bench.tasks.predicted_costs import PeakByDepth, peak_by_depth


@dataclass(frozen=True)
class Fit:
    """What a training step needs of the memory, and how many workers can train at the same time."""

    need: PeakByDepth
    workers: int


def fit(request: AdviceRequest, workers: int) -> Fit:
    """The fit of ``request``; raises ``BadInput`` for a depth that does not fit memory."""
    need = peak_by_depth(request.run(request.connections[0], 2, request.first_rates[-1], 0))
    return Fit(need, workers_that_fit(need, request.depth, workers, request.device))


def workers_that_fit(need: PeakByDepth, depth: int, workers: int, device: str) -> int:
    """How many of ``workers`` processes can train networks of ``depth`` at the same time.

    Raises ``BadInput``, with the number, where not one can.
    """
    workers = 1 if device.startswith("cuda") else workers  # they would share it
    usable = usable_bytes(device)
    available = usable - PROCESS_BYTES
    if need.at(depth) > available:
        raise BadInput(
            f"depth {depth:,} does not fit memory: a training step of pre-norm needs about {gib(need.at(depth))}, and "
            f"{gib(available)} may be used; depth {need.depth_in(available):,} would fit memory"
        )
    return min(workers, usable // (need.at(depth) + PROCESS_BYTES))

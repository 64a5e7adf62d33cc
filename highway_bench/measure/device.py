"""The device of a step: waiting for its work, and emptying its cache."""

from __future__ import annotations

from collections.abc import Callable

import torch


def synchronise(device: str | torch.device) -> None:
    """Wait until ``device`` has finished all its work; on a CPU there is nothing to wait for."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def cache_eviction(device: str | torch.device) -> Callable[[], None]:
    """A callable that evicts a step's buffers from a GPU's L2 cache; call it between timed steps.

    It overwrites a buffer of twice the cache's size. On a CPU it does nothing: a network that fits the cache is warm
    there in practice too.
    """
    target = torch.device(device)
    if target.type != "cuda":
        return lambda: None
    buffer = torch.empty(2 * torch.cuda.get_device_properties(target).L2_cache_size, dtype=torch.uint8, device=target)

    def evict() -> None:
        buffer.zero_()
        synchronise(target)

    return evict

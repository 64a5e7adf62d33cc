"""The device of a step: its work, its memory, its cache, and the stream before the capture of a CUDA graph."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import torch

T = TypeVar("T")


def synchronise(device: str | torch.device) -> None:
    """Wait until ``device`` has finished all its work; on a CPU there is nothing to wait for."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def in_threads(count: int) -> Iterator[None]:
    """Meanwhile torch computes in ``count`` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def release(device: str | torch.device) -> None:
    """Return the memory of unused tensors to a CUDA device, those in reference cycles included; nothing on a CPU."""
    if torch.device(device).type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


@contextmanager
def freed(device: str | torch.device) -> Iterator[None]:
    """``release`` at the end. After an error, the tensors that the functions called meanwhile hold are released too:
    the error itself may be kept for long."""
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        release(device)


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


def on_side_stream(work: Callable[[], T], device: torch.device) -> T:
    """The result of ``work``, called on the side stream of a CUDA device.

    torch requires this of the steps before a capture: cuBLAS and cuDNN set themselves up in them.
    """
    side, main = _side_stream(device), torch.cuda.current_stream(device)
    side.wait_stream(main)
    with torch.cuda.stream(side):
        result = work()
    main.wait_stream(side)
    return result


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One a process, because cuBLAS keeps a workspace for each stream that it ran on: 32 MiB on Hopper."""
    return torch.cuda.Stream(device)

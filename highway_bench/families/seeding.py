"""Seeding: the random numbers that weights start from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """While the context is open, torch's default device draws from ``seed``; its generator's state is restored after.

    No other device's generator changes. ``torch.manual_seed`` would seed those of all GPUs too. ``None`` changes
    nothing.
    """
    if seed is None:
        yield
        return
    device = torch.get_default_device()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.default_generators[device.index].manual_seed(seed)
        yield


@contextmanager
def all_seeded(seed: int) -> Iterator[None]:
    """While the context is open, torch, numpy and ``random`` draw from ``seed``: a user's layer may use any of them."""
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - what a user's layer may draw from
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        with seeded(seed):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002

"""Shared by the tests of training: small trainings on digits, in float64 so that the order of a sum does not matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from highway_bench.data import make_dataset
from highway_bench.network import build
from highway_bench.training.loop import Training
from highway_bench.training.recipe import Recipe

MakeTraining = Callable[..., Training]


@pytest.fixture
def training() -> MakeTraining:
    """Builds the training of a small network on digits. Other keywords go into the recipe."""

    def make(
        block: str = "highway",
        family: str = "dense",
        *,
        seed: int = 0,
        dataset: str = "digits",
        depth: int = 3,
        width: int = 8,
        batch_size: int = 50,
        evaluated: bool = False,
        dtype: torch.dtype = torch.float64,
        device: str = "cpu",
        family_options: dict[str, Any] | None = None,
        block_options: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        **recipe: Any,
    ) -> Training:
        source = make_dataset(dataset, **(data or {}))
        network = build(
            block,
            family,
            width=width,
            depth=depth,
            dataset=source,
            seed=seed,
            family_options=family_options,
            block_options=block_options,
        ).to(device, dtype)
        loaded = source.load(seed=seed)
        return Training(
            network,
            loaded.train,
            source.target_kind,
            Recipe(**{"steps": 40, **recipe}),
            batch_size,
            seed,
            loaded.test if evaluated else None,
        )

    return make

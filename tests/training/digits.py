"""Small trainings on digits, in float64 so that the order of a sum does not matter."""

import torch

from highway_bench.data import make_dataset
from highway_bench.network import build
from highway_bench.training.loop import Training
from highway_bench.training.recipe import Recipe


def training(
    block="highway",
    family="dense",
    *,
    seed=0,
    dataset="digits",
    depth=3,
    batch_size=50,
    evaluated=False,
    device="cpu",
    options=None,
    data=None,
    **recipe,
):
    """The training of a small network. ``options`` are those of block and family; other keywords go into the recipe."""
    source = make_dataset(dataset, **(data or {}))
    network = build(block, family, width=8, depth=depth, dataset=source, seed=seed, **(options or {}))
    loaded = source.load(seed=seed)
    return Training(
        network.to(device, torch.float64),
        loaded.train,
        source.target_kind,
        Recipe(**{"steps": 40, **recipe}),
        batch_size,
        seed,
        loaded.test if evaluated else None,
    )

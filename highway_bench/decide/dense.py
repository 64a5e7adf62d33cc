"""The dense part: fully connected layers on digits of 28 × 28 pixels, trained by SGD with momentum as in the papers."""

from __future__ import annotations

from typing import Any

from highway_bench.cell import Cell
from highway_bench.decide.candidate import FRESH_SEEDS, LONGER, MORE_SEEDS, starts_of
from highway_bench.decide.part import Part
from highway_bench.decide.rates import FIRST_SGD_RATES
from highway_bench.plan.grid import TRAINED

BLOCKS = ("plain", "highway", "highway-free", "residual", "pre-norm", "post-norm", "rezero", "deepnorm")
DEPTHS = (10, 20, 50, 100, 200, 500)
RECIPE: dict[str, Any] = {
    "optimiser": "sgd",
    "momentum": 0.9,
    "decay": 0.1,
    "steps": 600,
    "together": FRESH_SEEDS + MORE_SEEDS,
}


def dense() -> Part:
    """Every block of this part at each of its starts."""
    cells = [
        Cell(
            task="trainability",
            block=block,
            family="dense",
            depth=1,
            width=TRAINED.widths["vector"],
            nominal_width=TRAINED.widths["vector"],
            batch_size=TRAINED.batches["vector"],
            dataset="mnist-5k",
            recipe=RECIPE,
        )
        for block in BLOCKS
    ]
    return Part(
        "dense", tuple(one for cell in cells for one in starts_of(cell, DEPTHS, FIRST_SGD_RATES, longer=LONGER))
    )

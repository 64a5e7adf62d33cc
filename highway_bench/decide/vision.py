"""The vision part: digits of 14 × 14 pixels, as images or as rows, in four families."""

from __future__ import annotations

from itertools import chain
from typing import Any

from highway_bench.cell import Cell
from highway_bench.decide.candidate import ADAMW, LONGER, starts_of
from highway_bench.decide.part import Part

BLOCKS = ("plain", "highway", "residual", "pre-norm", "post-norm", "rezero", "deepnorm")
WIDTHS = {"conv": 16, "conv-pair": 16, "bilstm": 32, "transformer": 32}
DEPTHS = {"conv": (5, 10, 20, 40), "conv-pair": (5, 10, 20, 40), "bilstm": (5, 10, 20, 40), "transformer": (5, 10, 20)}
FIRST_RATES = (0.03, 0.01, 0.003)
BATCH = 32
RECIPE: dict[str, Any] = {**ADAMW, "warm_up": 50, "steps": 600, "dataset": {"pooled": 2}}


def vision() -> Part:
    """Every block of this part at each of its starts, in each family."""
    cells = [
        Cell(
            task="trainability",
            block=block,
            family=family,
            depth=1,
            width=width,
            nominal_width=width,
            batch_size=BATCH,
            dataset="mnist-5k",
            recipe=RECIPE,
        )
        for family, width in WIDTHS.items()
        for block in BLOCKS
    ]
    every = (starts_of(cell, DEPTHS[cell.family], FIRST_RATES, longer=LONGER) for cell in cells)
    return Part("vision", tuple(chain.from_iterable(every)))

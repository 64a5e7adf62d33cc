"""The dense part: fully connected layers on digits of 28 × 28 pixels, trained by SGD with momentum as in the papers."""

from __future__ import annotations

from highway_bench.decide.candidate import LONGER, starts_of
from highway_bench.decide.part import Part
from highway_bench.plan.settings import DENSE

BLOCKS = ("plain", "highway", "highway-free", "residual", "pre-norm", "post-norm", "rezero", "deepnorm")
DEPTHS = (10, 20, 50, 100, 200, 500)


def dense() -> Part:
    """Every block of this part at each of its starts."""
    every = (starts_of(DENSE.cell(block), DEPTHS, DENSE.first, longer=LONGER) for block in BLOCKS)
    return Part("dense", tuple(one for starts in every for one in starts))

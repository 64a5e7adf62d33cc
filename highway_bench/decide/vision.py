"""The vision part: digits of 14 × 14 pixels, as images or as rows, in four families."""

from __future__ import annotations

from highway_bench.decide.candidate import LONGER, starts_of
from highway_bench.decide.part import Part
from highway_bench.plan.settings import BILSTM, CONV, CONV_PAIR, TRANSFORMER

BLOCKS = ("plain", "highway", "residual", "pre-norm", "post-norm", "rezero", "deepnorm")
DEPTHS = (
    (CONV, (5, 10, 20, 40)),
    (CONV_PAIR, (5, 10, 20, 40)),
    (BILSTM, (5, 10, 20, 40)),
    (TRANSFORMER, (5, 10, 20)),
)


def vision() -> Part:
    """Every block of this part at each of its starts, in each family."""
    every = (
        starts_of(setting.cell(block), depths, setting.first, longer=LONGER)
        for setting, depths in DEPTHS
        for block in BLOCKS
    )
    return Part("vision", tuple(one for starts in every for one in starts))

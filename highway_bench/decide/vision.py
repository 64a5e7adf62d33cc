"""The candidates of the vision part: digits of 14 × 14 pixels, as images or as rows, in four families."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.decide.candidate import Candidate
from highway_bench.families import make_family
from highway_bench.matching import matched_width

BLOCKS = ("plain", "highway", "residual", "pre-norm", "post-norm", "rezero", "deepnorm")
WIDTHS = {"conv": 16, "conv-pair": 16, "bilstm": 32, "transformer": 32}
DEPTHS = {"conv": (5, 10, 20, 40), "conv-pair": (5, 10, 20, 40), "bilstm": (5, 10, 20, 40), "transformer": (5, 10, 20)}
FIRST_RATES = (0.3, 0.1, 0.03)
BATCH = 32
RECIPE: dict[str, Any] = {
    "optimiser": "sgd",
    "momentum": 0.9,
    "decay": 0.1,
    "steps": 400,
    "dataset": {"pooled": 2},
}


def vision_candidates(device: str = "cpu") -> Iterator[Candidate]:
    """Every block of this part at each of its starts, in each family."""
    for name, width in WIDTHS.items():
        family = make_family(name)
        for block in BLOCKS:
            spec = blocks.get(block)
            template = Cell(
                task="trainability",
                block=block,
                family=name,
                depth=1,
                width=matched_width(spec, family, width, "params"),
                nominal_width=width,
                batch_size=BATCH,
                device=device,
                dataset="mnist-5k",
                recipe=RECIPE,
            )
            for start in spec.starts:
                if start.init in family.inits:
                    yield Candidate(template.but(start=start.name), DEPTHS[name], FIRST_RATES)

"""Starts: the cells of ``propagation`` that a forecast still needs for the trainings of a store."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.forecast.examples import KEY, measured_starts
from highway_bench.report.rows import of_task, prepared, recipe_of, rows_of

ITEMS = 16
SEEDS = (0, 1)
CARRIED = ("dataset", "layout")  # words of a training's recipe that its start needs too


def lacking_starts(rows: pd.DataFrame) -> list[Cell]:
    """Cells that measure the start of every training in ``rows`` whose start is not measured, each at two seeds."""
    rows = prepared(rows)
    known = {tuple(start[name] for name in KEY) for start in rows_of(measured_starts(rows))}
    trainings = of_task(rows, "trainability").assign(name=rows["block"], block=rows["label"])
    every = rows_of(trainings.drop_duplicates(list(KEY)))
    lacking = [training for training in every if tuple(training[name] for name in KEY) not in known]
    return [start_cell(training, seed) for training in lacking for seed in SEEDS]


def start_cell(training: dict[str, Any], seed: int) -> Cell:
    """The cell that measures the start of a training, given as the columns of one of its rows."""
    recipe = recipe_of(training["recipe"])
    length = training["seq_len"]
    return Cell(
        task="propagation",
        block=training["name"],
        block_options=recipe_of(training["block_options"]),
        family=training["family"],
        family_options=recipe_of(training["family_options"]),
        start=training["start"],
        match=training["match"],
        width=int(training["width"]),
        nominal_width=int(training["nominal_width"]),
        depth=int(training["depth"]),
        batch_size=min(ITEMS, int(training["batch_size"])),
        seq_len=None if length is None or math.isnan(length) else int(length),
        dtype="float64",
        device=training["device"],
        dataset=training["dataset"],
        recipe={"gain": 1.0, **{word: recipe[word] for word in CARRIED if word in recipe}},
        seed=seed,
    )

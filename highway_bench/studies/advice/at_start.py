"""At the start: whether signal and gradient of a connection are in range before it is trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from highway_bench.cell import Cell
from highway_bench.frames.propagation import EXPLODES, IN_RANGE, MIXED, VANISHES
from highway_bench.studies.advice.connections import Connection
from highway_bench.studies.advice.measured import MeasuredCells
from highway_bench.studies.advice.request import AdviceRequest

WAYS: Final = ("signal", "gradient")
SEEDS: Final = (0, 1)
ITEMS: Final = 16
CARRIED: Final = ("dataset", "layout")  # words of a training's recipe that its start needs too
ALWAYS: Final = "budget_mismatch"
"""A metric of every start that was measured."""


def start_cells(request: AdviceRequest, connection: Connection) -> list[Cell]:
    """The cells that measure the start of a connection's trainings, one a seed."""
    training = request.run(connection, 1, request.first_rates[0], 0)
    words = {word: value for word, value in training.recipe.items() if word in CARRIED}
    start = training.but(
        task="propagation",
        batch_size=min(ITEMS, training.batch_size),
        dtype="float64",
        recipe={"gain": 1.0, **words},
    )
    return [start.but(seed=seed) for seed in SEEDS]


def at_start(cells: Sequence[Cell], measured: MeasuredCells) -> str:
    """Whether the starts of ``cells`` are ``in range``, or which of signal and gradient is not; empty where none was
    measured."""
    ended = [cell for cell in cells if measured.value(cell, ALWAYS) is not None]
    if not ended:
        return ""
    verdicts = {way: in_words(_verdict(cell, way, measured) for cell in ended) for way in WAYS}
    outside = [f"{way} {verdict}" for way, verdict in verdicts.items() if verdict != IN_RANGE]
    return ", ".join(outside) or IN_RANGE


def in_words(verdicts: Iterable[str]) -> str:
    """The verdict of all seeds, or ``mixed``."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else MIXED


def _verdict(cell: Cell, way: str, measured: MeasuredCells) -> str:
    for verdict in (EXPLODES, VANISHES):
        if measured.value(cell, f"{way}_{verdict}_at") is not None:
            return verdict
    return IN_RANGE

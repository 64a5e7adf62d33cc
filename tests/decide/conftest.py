"""A tiny part of the protocol, trained once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from highway_bench.cell import Cell
from highway_bench.studies.decide.candidate import Candidate, TrainingEnd, Trainings
from highway_bench.studies.decide.language import LanguagePart, language
from highway_bench.studies.decide.part import Part
from highway_bench.studies.decide.protocol import Trainer
from tests.inline_engine import InlineEngine

TEMPLATE = Cell(
    task="trainability",
    block="plain",
    family="dense",
    depth=1,
    width=8,
    nominal_width=8,
    batch_size=32,
    dataset="digits",
    recipe={"optimiser": "sgd", "steps": 4},
)
TINY = Part("tiny", (Candidate(TEMPLATE, (1,), (0.3, 0.1, 0.03)),))


class TrainedPart(NamedTuple):
    """What training ``TINY`` gives: its store, how its trainings ended, and the cells of each round."""

    store: Path
    trainings: Trainings
    rounds: list[int]


@pytest.fixture(scope="session")
def trained_part(tmp_path_factory: pytest.TempPathFactory) -> TrainedPart:
    folder, rounds = tmp_path_factory.mktemp("decide"), []
    engine = InlineEngine(folder)
    trainer = Trainer(folder / "s.sqlite", engine, on_round=lambda number, cells: rounds.append(len(cells)))
    return TrainedPart(trainer.store, trainer.train(TINY), rounds)


@pytest.fixture(scope="session")
def part() -> LanguagePart:
    return language()


def trained(candidate: Candidate | LanguagePart, ends: Callable[[Cell], TrainingEnd]) -> dict[Cell, TrainingEnd]:
    """All trainings of a candidate or part whose cells end so."""
    trainings: dict[Cell, TrainingEnd] = {}
    while cells := candidate.pending(trainings):
        assert not set(cells) & trainings.keys()
        trainings |= {cell: ends(cell) for cell in cells}
    return trainings

"""A tiny part of the protocol, trained once."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from highway_bench.studies.decide.candidate import Candidate, Trainings
from highway_bench.studies.decide.language import language
from highway_bench.studies.decide.part import Protocol
from highway_bench.studies.decide.rounds import Trainer, rounds
from tests.inline_engine import InlineEngine, cell_of

TEMPLATE = cell_of("trainability", batch_size=32, dataset="digits", recipe={"optimiser": "sgd", "steps": 4})
TINY = Protocol("tiny", (Candidate(TEMPLATE, (1,), (0.3, 0.1, 0.03)),))


class TrainedPart(NamedTuple):
    """What training ``TINY`` gives: its store, how its trainings ended, and the cells of each round."""

    store: Path
    trainings: Trainings
    rounds: list[int]


@pytest.fixture(scope="session")
def trained_part(tmp_path_factory):
    folder, numbers = tmp_path_factory.mktemp("decide"), []
    store = folder / "s.sqlite"
    trainer = Trainer(store, InlineEngine(folder), on_round=lambda number, cells: numbers.append(len(cells)))
    return TrainedPart(store, trainer.train(TINY.pending), numbers)


@pytest.fixture(scope="session")
def part():
    return language()


def trained(one, ends):
    """All trainings of a candidate or part whose cells end so, in rounds none of which has a cell of another."""

    def measure(cells):
        return {cell: ends(cell) for cell in cells}

    found = rounds(one.pending, measure)
    assert one.pending(found) == []
    return found

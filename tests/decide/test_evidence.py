"""The longer parts: which runs they have, in which order, and that each ends."""

from collections import Counter

import pytest

from highway_bench.data import make_dataset
from highway_bench.studies.decide import evidence
from highway_bench.studies.decide.candidate import REFERENCE, TrainingEnd
from highway_bench.studies.decide.protocol import PARTS

NAMES = ("resnet", "long", "code", "new", "deep", "mnist", "wide")


def part_of(name):
    if name == "mnist" and make_dataset("mnist").missing():
        pytest.skip("MNIST is missing")
    return PARTS[name]()


def fresh(cells):
    return [cell for cell in cells if cell.trial is None]


@pytest.mark.parametrize("name", NAMES)
def test_each_part_tries_every_start_and_ends(name):
    part = part_of(name)
    cells = part.usual_cells()
    assert len(cells) == len(set(cells))
    assert {(cell.block, cell.start) for cell in cells} == {
        (one.template.block, one.template.start) for one in part.candidates
    }
    finals = Counter((cell.block, cell.depth, cell.recipe["optimiser"]) for cell in fresh(cells))
    blocks, depths = ({key[index] for key in finals} for index in (0, 1))
    assert REFERENCE in blocks
    assert {depth for one in part.candidates for depth in one.depths} == depths


def test_the_better_start_goes_on():
    part, trainings = evidence.wide(), {}
    while new := part.pending(trainings):
        for cell in new:
            trainings[cell] = TrainingEnd(1.0 if cell.start == "depth-aware" else 2.0, success=True)
    starts = {(one.template.block, one.template.start) for one in part.candidates}
    expected = {(block, "depth-aware" if (block, "depth-aware") in starts else "published") for block, _ in starts}
    assert {(cell.block, cell.start) for cell in fresh(list(trainings))} == expected

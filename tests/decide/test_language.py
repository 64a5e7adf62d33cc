"""The language part: which candidates go on, and what they train."""

from collections import Counter

import pytest

from highway_bench.studies.decide.candidate import TUNING_SEEDS, TrainingEnd
from highway_bench.studies.decide.language import DEEP, SHALLOW, WIDER, WIDER_SEEDS, WIDTH
from tests.decide.conftest import trained

BETTER = ("keel", "mhc", "rezero", "highway", "parallel", "deepnorm")  # by rank; the last one is not among the leaders


def loss(cell):
    """A loss that is lowest at 0.003, and at the depth-aware start."""
    rank = BETTER.index(cell.block) if cell.block in BETTER else 20
    return 1.0 + 0.01 * rank + (0.003 if cell.start == "published" else 0.0) + abs(cell.recipe["rate"] - 0.003)


@pytest.fixture(scope="module")
def trainings(part):
    return trained(part, lambda cell: TrainingEnd(loss(cell), True))


def test_every_start_is_tried_and_the_better_one_goes_on(part, trainings):
    seeds = Counter(
        (cell.block, cell.start, cell.seed)
        for cell in trainings
        if cell.depth == SHALLOW and cell.nominal_width < WIDER
    )
    tried = {(one.template.block, one.template.start) for one in part.candidates}
    assert {(block, start) for block, start, seed in seeds if seed == TUNING_SEEDS[0]} == tried
    assert all(seeds[block, start, TUNING_SEEDS[0]] == 3 for block, start in tried)
    assert seeds["highway", "depth-aware", TUNING_SEEDS[1]] == 2
    assert ("highway", "published", TUNING_SEEDS[1]) not in seeds


def test_the_smaller_depth_is_decided_before_the_greater_one_begins(trainings):
    order = [(cell.depth, cell.nominal_width, cell.seed in TUNING_SEEDS) for cell in trainings]
    stages = list(dict.fromkeys(order))
    assert stages == [
        (SHALLOW, WIDTH, True),
        (SHALLOW, WIDTH, False),
        (SHALLOW, WIDER, False),
        (DEEP, WIDTH, True),
        (DEEP, WIDTH, False),
    ]
    deep = [cell for cell in trainings if cell.depth == DEEP and cell.seed in TUNING_SEEDS]
    assert {cell.recipe["rate"] for cell in deep} == {0.003, 0.001}


def test_the_best_and_pre_norm_train_with_fresh_seeds(trainings):
    finals = Counter((cell.block, cell.depth) for cell in trainings if cell.seed < 100 and cell.nominal_width < WIDER)
    expected = {"pre-norm", *BETTER[:5]}
    assert finals == {(block, SHALLOW): 10 for block in expected} | {(block, DEEP): 5 for block in expected}
    wide = Counter(cell.block for cell in trainings if cell.nominal_width == WIDER)
    assert wide == dict.fromkeys(expected, WIDER_SEEDS)
    assert all(cell.width > 64 for cell in trainings if cell.nominal_width == WIDER)


def test_a_block_that_always_diverges_is_tried_and_left(part):
    trainings = trained(part, lambda cell: TrainingEnd(None if cell.block == "mhc" else loss(cell), True))
    assert not [cell for cell in trainings if cell.block == "mhc" and cell.seed < 100]
    assert {cell.depth for cell in trainings if cell.block == "mhc"} == {SHALLOW, DEEP}

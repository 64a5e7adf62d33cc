"""Gate biases by depth: the guideline's cells, and the verdicts for given losses."""

import math

import pytest

from highway_bench.data import make_dataset
from highway_bench.errors import BadInput
from highway_bench.families.parts import count_parameters
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.gate_bias import BIASES, GUIDELINE
from highway_bench.studies.reproduce.request import Request
from highway_bench.tasks.architecture_network import cell_network
from tests.reproduce.conftest import A, N, R, S, U, outcome_of, verdicts

STUDY = reproductions.get("gate-bias")
ADVISED = dict.fromkeys(GUIDELINE.items(), 0.1)
"""Losses by layers and bias: the advised ones train."""


def outcome(losses, accuracy=0.99, failing=0, gone=2.3):
    """The conclusion for these losses; the first ``failing`` seeds at 10 layers and bias −1 have the loss ``gone``."""

    def metrics(cell):
        if "own_rate" not in cell.recipe:
            return {"final_loss": 0.01, "test_accuracy": accuracy}
        layers, bias, seed = cell.depth + 2, cell.block_options["gate_bias"], cell.seed - STUDY.version.seen
        loss = losses.get((layers, bias), 1.0) * (1 + 0.02 * ((seed + int(bias)) % 2))
        loss = gone if (layers, bias) == (10, -1.0) and seed < failing else loss
        return {"final_loss": loss, "rate": 0.1, "test_accuracy": 0.9, "success": 1.0}

    return outcome_of(STUDY, metrics)


def test_the_guideline_suffices_where_its_biases_leave_chance():
    """Whether other biases are as good is reported, and decides nothing."""
    result = outcome(ADVISED | {(30, -4.0): 0.05})
    assert verdicts(result)[:3] == [S] * 3  # the rule came after its runs
    (axes,) = result.pictures[0].figure.axes
    low, high = axes.get_ylim()
    assert 0 < low < 1.15 < 2.31 < high
    assert len(result.tables[0].entries) == len(GUIDELINE) * len(BIASES)


@pytest.mark.parametrize(("failing", "expected"), [(2, S), (8, U), (15, A)])
@pytest.mark.parametrize("loss", [2.3, math.inf])
def test_the_seeds_that_leave_chance_decide(failing, expected, loss):
    assert verdicts(outcome(ADVISED, failing=failing, gone=loss))[:3] == [expected, S, S]


def test_the_advised_bias_and_those_next_to_it_have_more_seeds():
    depths = (10, 20, 30, 15)  # the guideline has no bias for the last
    arms = STUDY.arms(Request(depth=depths))
    assert {layers: [len(arms[layers, bias].fresh) for bias in BIASES] for layers in depths} == {
        10: [16, 16, 16, 5, 5],
        20: [5, 16, 16, 16, 5],
        30: [5, 5, 16, 16, 16],
        15: [5, 5, 5, 5, 5],
    }


def test_an_accuracy_counts_on_the_whole_set_only():
    whole = STUDY.others(Request())[0].dataset == "mnist"
    assert verdicts(outcome({}, accuracy=0.9960))[3:] == [R if whole else N] * 2
    assert verdicts(outcome({}, accuracy=0.97))[3:] == [N] * 2


def test_the_networks():
    sized = STUDY.others(Request(device="cpu"))
    assert [count_parameters(cell_network(cell)) for cell in sized] == [38_986, 151_690]
    assert {cell.depth for cell in STUDY.cells(Request())} == {8, 18, 28}
    items = 60_000 if make_dataset("mnist").missing() is None else 4_000
    assert STUDY.others(Request(epochs=2))[0].recipe["steps"] == 2 * items // 100
    with pytest.raises(BadInput, match="5 at least"):
        STUDY.cells(Request(depth=(4,)))

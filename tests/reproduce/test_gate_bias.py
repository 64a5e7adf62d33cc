"""Gate biases by depth: the guideline's cells, and the verdicts for given losses."""

from __future__ import annotations

import math

import pytest

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.errors import BadInput
from highway_bench.families.parts import count_parameters
from highway_bench.plan.settings import FIRST_SGD_RATES
from highway_bench.studies.reproduce.base import Conclusion, reproductions
from highway_bench.studies.reproduce.claims import Verdict
from highway_bench.studies.reproduce.gate_bias import BIASES, GUIDELINE, PUBLISHED
from highway_bench.studies.reproduce.request import Request
from highway_bench.tasks.architecture_network import cell_network
from tests.reproduce.conftest import A, N, R, S, U, Values, followed, rows_of, verdicts

REQUEST = Request()
GATE_BIAS = reproductions.get("gate-bias")


def values(losses: dict[tuple[int, float], float], accuracy: float = 0.99, request: Request = REQUEST) -> Values:
    """Every run, and its loss by layers and bias."""

    def metrics(cell: Cell) -> dict[str, float]:
        if "own_rate" not in cell.recipe:
            return {"final_loss": 0.01, "test_accuracy": accuracy}
        bias = cell.block_options["gate_bias"]
        loss = losses.get((cell.depth + 2, bias), 1.0) * (1 + 0.02 * ((cell.seed + int(bias)) % 2))
        return {"final_loss": loss, "rate": 0.1, "test_accuracy": 0.9, "success": 1.0}

    return followed(GATE_BIAS, request, metrics)


def runs_of(result: Values, layers: int, bias: float) -> list[Cell]:
    """The runs of one depth and bias that count."""
    return [
        cell
        for cell in result
        if "own_rate" in cell.recipe
        and cell.trial is None
        and (cell.depth + 2, cell.block_options["gate_bias"]) == (layers, bias)
    ]


def outcome(result: Values, request: Request = REQUEST) -> Conclusion:
    return GATE_BIAS.outcome(rows_of(result), request)


def test_the_guideline_suffices_where_its_biases_leave_chance() -> None:
    """Whether other biases are as good is reported, and decides nothing."""
    losses = dict.fromkeys(GUIDELINE.items(), 0.1) | {(30, -4.0): 0.05}
    result = outcome(values(losses))
    assert verdicts(result)[:3] == [S] * 3  # the rule came after its runs
    (axes,) = result.pictures[0].figure.axes
    low, high = axes.get_ylim()
    assert 0 < low < 1.15 < 2.31 < high
    assert len(result.tables[0].entries) == len(GUIDELINE) * len(BIASES)


@pytest.mark.parametrize(("failing", "expected"), [(2, S), (8, U), (15, A)])
@pytest.mark.parametrize("loss", [2.3, math.inf])
def test_the_seeds_that_leave_chance_decide(failing: int, expected: Verdict, loss: float) -> None:
    result = values(dict.fromkeys(GUIDELINE.items(), 0.1))
    for cell in runs_of(result, 10, -1.0)[:failing]:
        result[cell]["final_loss"] = loss
    assert verdicts(outcome(result))[:3] == [expected, S, S]


def test_the_advised_bias_and_those_next_to_it_have_more_seeds() -> None:
    seeds = {
        layers: [len(GATE_BIAS.arms(Request(depth=(layers,)))[layers, bias].fresh) for bias in BIASES]
        for layers in (10, 20, 30, 15)
    }
    assert seeds == {
        10: [16, 16, 16, 5, 5],
        20: [5, 16, 16, 16, 5],
        30: [5, 5, 16, 16, 16],
        15: [5, 5, 5, 5, 5],  # the guideline has no bias for it
    }
    assert len(GATE_BIAS.arms(Request(seeds=3))[10, 0.0].fresh) == 3


def test_an_accuracy_counts_on_the_whole_set_only() -> None:
    whole = GATE_BIAS.others(Request())[0].dataset == "mnist"
    result = verdicts(outcome(values({}, accuracy=0.9960)))[3:]
    assert result == [R if whole else N] * 2
    assert verdicts(outcome(values({}, accuracy=0.97)))[3:] == [N] * 2


def test_nothing_measured_but_one_depth() -> None:
    request = Request(depth=(10,), seeds=1)
    only = {cell: {"final_loss": 0.5} for cell in GATE_BIAS.arms(request)[10, -1.0].pending({})}
    assert set(verdicts(outcome(only, request))) == {N}


def test_the_networks() -> None:
    sized = GATE_BIAS.others(Request(device="cpu"))
    assert [count_parameters(cell_network(cell)) for cell in sized] == [38_986, 151_690]
    cells = GATE_BIAS.cells(Request(seeds=1, steps=7))
    assert len(set(cells)) == len(GUIDELINE) * len(BIASES) * len(FIRST_SGD_RATES) + len(PUBLISHED)
    assert {cell.depth for cell in cells} == {8, 18, 28}
    items = 60_000 if make_dataset("mnist").missing() is None else 4_000
    assert GATE_BIAS.others(Request(epochs=2))[0].recipe["steps"] == 2 * items // 100


def test_a_depth_that_is_too_small() -> None:
    with pytest.raises(BadInput, match="5 at least"):
        GATE_BIAS.cells(Request(depth=(4,)))

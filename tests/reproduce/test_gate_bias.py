"""Gate biases by depth: the guideline's cells, and the verdicts for given losses."""

from __future__ import annotations

import math
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.decide.rates import FIRST_SGD_RATES
from highway_bench.errors import BadInput
from highway_bench.families.parts import count_parameters
from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.claims import Verdict
from highway_bench.reproduce.gate_bias import BIASES, GUIDELINE, PUBLISHED, arm_of, sized_cell
from highway_bench.reproduce.request import Request
from highway_bench.tasks.architecture_network import cell_network
from tests.reproduce.conftest import Values, followed

REQUEST = Request()
GATE_BIAS = reproductions.get("gate-bias")


def values(losses: dict[tuple[int, float], float], accuracy: float = 0.99, request: Request = REQUEST) -> Values:
    """Every run, and its loss by layers and bias."""

    def metrics(cell: Cell) -> dict[str, float]:
        if "own_rate" not in cell.recipe:
            return {"final_loss": 0.01, "test_accuracy": accuracy}
        bias = cell.block_options["gate_bias"]
        loss = losses.get((cell.depth + 2, bias), 1.0) * (1 + 0.02 * ((cell.seed + int(bias)) % 2))
        return {"final_loss": loss, "rate": 0.1, "test_accuracy": 0.9}

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


def verdicts(frame: Any, request: Request = REQUEST) -> list[Verdict]:
    return [one.verdict for one in GATE_BIAS.outcome(frame, request).findings]


def test_the_guideline_reproduces_where_its_biases_are_best(rows_of: Any) -> None:
    outcome = GATE_BIAS.outcome(rows_of(values(dict.fromkeys(GUIDELINE.items(), 0.1))), Request())
    assert [one.verdict for one in outcome.findings[:3]] == [Verdict.REPRODUCED] * 3
    assert "30 layers: −3" in outcome.pictures[0].title
    (axes,) = outcome.pictures[0].figure.axes
    assert {"chance 2.30", "threshold 1.15"} <= {text.get_text() for text in axes.texts}
    low, high = axes.get_ylim()
    assert 0 < low < 1.15 < 2.31 < high
    assert len(outcome.tables[0].entries) == len(GUIDELINE) * len(BIASES)


def test_a_bias_that_is_as_good_as_one_next_to_it_is_not_the_best(rows_of: Any) -> None:
    losses = dict.fromkeys(GUIDELINE.items(), 0.1) | {(30, -4.0): 0.0999}
    assert verdicts(rows_of(values(losses)))[2] == Verdict.UNDECIDED


def test_another_best_bias_contradicts(rows_of: Any) -> None:
    assert verdicts(rows_of(values({(10, -4.0): 0.1})))[0] == Verdict.CONTRADICTED


def test_a_guideline_that_diverges_at_every_seed_contradicts(rows_of: Any) -> None:
    (result, *_) = GATE_BIAS.outcome(rows_of(values({(10, -1.0): math.inf, (10, -2.0): 0.1})), REQUEST).findings
    assert result.verdict == Verdict.CONTRADICTED
    assert result.measured.startswith("loss at ")
    assert "over that at −1 (diverged at 0 of 16 seeds, the other at 16 of 16): 0×" in result.measured
    assert "; not worse than any: −2; seeds that leave chance: " in result.measured


@pytest.mark.parametrize("bias", BIASES)
def test_one_seed_that_diverged_decides_nothing(rows_of: Any, bias: float) -> None:
    result = values({})
    result[runs_of(result, 10, bias)[1]]["final_loss"] = math.inf
    assert verdicts(rows_of(result))[0] in (Verdict.NOT_TESTABLE, Verdict.UNDECIDED)


def test_biases_that_all_stay_at_chance_are_not_compared(rows_of: Any) -> None:
    chance = values(dict.fromkeys(((layers, bias) for layers in GUIDELINE for bias in BIASES), 2.25))
    (result, *_) = GATE_BIAS.outcome(rows_of(chance), REQUEST).findings
    assert result.verdict == Verdict.NOT_TESTABLE
    assert "untrained" in result.measured


def test_the_biases_that_decide_have_more_seeds() -> None:
    seeds = {layers: [len(arm_of(layers, bias, REQUEST).fresh) for bias in BIASES] for layers in (10, 20, 30, 15)}
    assert seeds == {
        10: [16, 16, 16, 5, 5],
        20: [5, 16, 16, 16, 5],
        30: [5, 5, 16, 16, 16],
        15: [5, 5, 5, 5, 5],  # the guideline has no bias for it
    }
    assert len(arm_of(10, 0.0, Request(seeds=3)).fresh) == 3


def test_a_bias_that_leaves_chance_at_some_seeds_only_is_not_compared(rows_of: Any) -> None:
    """The mean of losses near zero and at chance is the loss of no net."""
    result = values(dict.fromkeys(GUIDELINE.items(), 0.1))
    for cell in runs_of(result, 10, 0.0)[:8]:
        result[cell]["final_loss"] = 2.3
    (finding, *_) = GATE_BIAS.outcome(rows_of(result), REQUEST).findings
    assert finding.verdict == Verdict.NOT_TESTABLE
    assert "(only some seeds leave chance at 0)" in finding.measured
    assert "seeds that leave chance: 8 of 16 at 0, 16 of 16 at −1" in finding.measured


def test_a_neighbour_must_be_worse(rows_of: Any) -> None:
    """That a bias far off is worse is no guideline."""
    (result, *_) = GATE_BIAS.outcome(rows_of(values({(10, -4.0): 9.0})), REQUEST).findings
    assert result.verdict == Verdict.UNDECIDED
    assert "not worse than any: 0, −1, −2 and −3; " in result.measured
    assert verdicts(rows_of(values({(10, -2.0): 9.0})))[0] == Verdict.UNDECIDED
    assert verdicts(rows_of(values({(10, 0.0): 9.0, (10, -2.0): 9.0})))[0] == Verdict.REPRODUCED


def test_biases_that_are_not_distinguished_decide_nothing(rows_of: Any) -> None:
    outcome = GATE_BIAS.outcome(rows_of(values({})), REQUEST)
    assert [one.verdict for one in outcome.findings[:3]] == [Verdict.UNDECIDED] * 3
    assert outcome.pictures[0].title.endswith("10 layers: all; 20 layers: all; 30 layers: all")


def test_an_accuracy_counts_on_the_whole_set_only(rows_of: Any) -> None:
    whole = sized_cell(16, Request()).dataset == "mnist"
    result = verdicts(rows_of(values({}, accuracy=0.9960)))[3:]
    assert result == [Verdict.REPRODUCED if whole else Verdict.NOT_TESTABLE] * 2
    assert verdicts(rows_of(values({}, accuracy=0.97)))[3:] == [Verdict.NOT_TESTABLE] * 2


def test_nothing_measured_but_one_depth(rows_of: Any) -> None:
    request = Request(depth=(10,), seeds=1)
    only = {cell: {"final_loss": 0.5} for cell in arm_of(10, -1.0, request).pending({})}
    assert set(verdicts(rows_of(only), request)) == {Verdict.NOT_TESTABLE}


def test_the_networks() -> None:
    sized = [sized_cell(width, Request(device="cpu")) for width in (16, 32)]
    assert [count_parameters(cell_network(cell)) for cell in sized] == [38_986, 151_690]
    cells = GATE_BIAS.cells(Request(seeds=1, steps=7))
    assert len(set(cells)) == len(GUIDELINE) * len(BIASES) * len(FIRST_SGD_RATES) + len(PUBLISHED)
    assert {cell.depth for cell in cells} == {8, 18, 28}
    items = 60_000 if make_dataset("mnist").missing() is None else 4_000
    assert sized_cell(16, Request(epochs=2)).recipe["steps"] == 2 * items // 100


def test_a_depth_that_is_too_small() -> None:
    with pytest.raises(BadInput, match="5 at least"):
        GATE_BIAS.cells(Request(depth=(4,)))

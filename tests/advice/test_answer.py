"""The words of an advice, from given losses and costs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from highway_bench.studies.advice.answer import Advice, ConnectionResult, unfit
from highway_bench.studies.advice.building import equation_in, start_in
from highway_bench.studies.advice.connections import Connection
from highway_bench.studies.advice.costs import RelativeCost, step_ratio
from highway_bench.studies.advice.finals import QualityVerdict, judged
from highway_bench.studies.advice.learning import Learning, learning_of
from highway_bench.studies.advice.measured import TimedSteps

Cost = Callable[..., RelativeCost]
PRE = Connection("pre-norm", "depth-aware")
GATE = Connection("highway", "published")
SUM = Connection("residual", "depth-aware")


@pytest.fixture
def advise(cost: Cost) -> Callable[..., Advice]:
    def make(
        losses: dict[Connection, Sequence[float | None]], ratios: dict[str, RelativeCost] | None = None, **words: Any
    ) -> Advice:
        costs = {name.block: cost(name.block) for name in losses} | (ratios or {})
        results = [
            ConnectionResult(
                name,
                8,
                learning_of(values, 0, 2.3),
                costs[name.block],
                steps=90,
                rate=0.1,
                loss=None if None in values else math.fsum(map(float, values)) / len(values),  # type: ignore[arg-type]
                runs=len(values),
                accuracy=0.9,
            )
            for name, values in losses.items()
        ]
        about: dict[str, Any] = {
            "layer": "m:f",
            "depth": 48,
            "width": 8,
            "minutes": 10,
            "data": "digits",
            "device": "cpu",
        }
        about["joins"] = 96  # of two modules a layer
        defaults: dict[str, Any] = {
            "about": about,
            "results": results,
            "quality": judged(losses),
            "finalists": list(losses),
            "ladder": (10, 30, 90),
            "timed_depth": 48,
            "notes": [],
            "store": Path("store.sqlite"),
        }
        return Advice(**defaults | words)

    return make


def spread(mean: float, by: float = 0.01) -> list[float]:
    return [mean * (1 + by * (-1) ** seed) for seed in range(6)]


def test_take(advise: Callable[..., Advice]) -> None:
    advice = advise({PRE: spread(1.0), GATE: spread(0.8)})
    assert advice.verdict == QualityVerdict.TAKE
    assert advice.use == (GATE,)
    assert "highway (published start)" in advice.headline
    assert "+25 % [" in advice.lines()[3]


def test_undecided(advise: Callable[..., Advice]) -> None:
    advice = advise({PRE: spread(1.0), GATE: [0.8, 1.3, 0.7, 1.2, 0.9, 1.25]})
    assert advice.verdict == QualityVerdict.UNDECIDED
    assert set(advice.use) == {PRE, GATE}
    assert "it would need " in advice.headline


def test_equal_takes_the_cheaper(advise: Callable[..., Advice], cost: Cost) -> None:
    losses = {PRE: spread(1.0), GATE: spread(1.0001)}
    assert "take the cheaper, highway" in advise(losses, {"highway": cost("highway", 0.8)}).headline
    open_cost = RelativeCost("highway", 0.8, 0.5, 1.2, 10.0)
    assert "do not decide" in advise(losses, {"highway": open_cost}).headline


def test_nothing_learns(advise: Callable[..., Advice]) -> None:
    advice = advise({PRE: spread(2.3), GATE: spread(2.4)})
    assert (advice.verdict, advice.use, advice.plain()["use"]) == (QualityVerdict.NONE, (), [])
    assert len(advice.lines()) == 4  # there is none to build


def test_a_finalist_that_does_not_learn_is_none_to_use(advise: Callable[..., Advice]) -> None:
    losses = {PRE: spread(1.0), GATE: [0.1, 0.1, 0.1, 9.0, 9.0, 9.0], SUM: spread(1.2, 0.03)}
    assert advise(losses).quality.best == GATE
    advice = advise(losses, quality=judged(losses, unfit(losses, advise(losses).results)))
    assert advice.use == (PRE,)
    (behind,) = advice.quality.behind
    (among_two,) = judged({name: losses[name] for name in (PRE, SUM)}).behind
    assert behind.high > among_two.high  # corrected for both comparisons
    every = {PRE: spread(2.3), GATE: spread(2.4)}
    assert unfit(every, advise(every).results) == set()


def test_finalists_that_diverge_are_none_to_take(advise: Callable[..., Advice]) -> None:
    losses: dict[Connection, Sequence[float | None]] = {PRE: spread(1.0), GATE: [0.5, None, 0.5, 0.5, 0.5, 0.5]}
    assert advise(losses).use == (PRE,)
    assert advise({PRE: [None] * 6, GATE: losses[GATE]}).use == ()


@pytest.mark.parametrize(
    ("losses", "succeeded", "word"),
    [
        ([0.1, 0.1], 2, Learning.TRAINS),
        ([0.1, 0.3], 1, Learning.LEARNS),
        ([2.2, 2.3], 0, Learning.STALLS),
        ([0.1, None], 1, Learning.UNSTABLE),
        ([None, None], 0, Learning.DIVERGES),
    ],
)
def test_does_it_train(losses: list[float | None], succeeded: int, word: Learning) -> None:
    assert learning_of(losses, succeeded, 2.3) == word


def test_the_cost_line_has_intervals(advise: Callable[..., Advice], cost: Cost) -> None:
    for given, says in (
        (RelativeCost("highway", 1.5, 1.0, 2.2, 2048.0), "undecided [1.00, 2.20]"),
        (RelativeCost("highway"), "not timed"),
        (RelativeCost("highway", 1.5), "no interval"),
        (cost("highway", 1.5), "1.50 [1.47, 1.53]"),
    ):
        assert says in advise({GATE: spread(1), PRE: spread(2)}, {"highway": given}).lines()[2]


def test_plain_values_are_json(advise: Callable[..., Advice]) -> None:
    plain = advise({PRE: spread(1.0), GATE: [*spread(0.8)[:5], None]}, {"highway": RelativeCost("highway")}).plain()
    printed = json.loads(json.dumps(plain, allow_nan=False))
    assert printed["use"] == [{"block": "pre-norm", "start": "depth-aware"}]
    gate = next(one for one in printed["connections"] if one["block"] == "highway")
    assert gate["loss"] is None
    assert gate["step_ratio"] is None
    assert gate["leader"] is False
    assert gate["at_start"] is None


def test_step_ratios_are_of_the_same_rounds() -> None:
    plain, process = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [0, 0, 1, 1, 2, 2]
    own = TimedSteps(*[[3.0, 3.0, 3.1, 3.1, 2.9, 2.9]] * 2, plain, process)
    reference = TimedSteps([2.0] * 6, [2.0] * 6, plain, process)
    ratio, low, high = step_ratio(own, reference)
    assert ratio == pytest.approx(1.5, rel=0.01)
    assert low < ratio < high
    assert step_ratio(reference, reference) == (1, 1, 1)
    assert all(math.isnan(one) for one in step_ratio(own, TimedSteps([2.0] * 6, [2.0] * 6, [9.0] * 6, process)))
    assert all(math.isnan(one) for one in step_ratio(None, reference))


def test_a_start_is_a_constant_factor_in_a_layer_of_ones_own() -> None:
    assert "÷ √L" in start_in("m:f", PRE)
    assert start_in("dense", PRE) == "last map ÷ √L"
    deep = Connection("deepnorm", "published")
    assert equation_in("m:f", deep) == "y = norm(L^¼·x + H(x))"
    assert "(4L)^−¼" in start_in("m:f", deep)

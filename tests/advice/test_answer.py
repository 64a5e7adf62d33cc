"""The words of an advice, from given losses and costs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from highway_bench.advice.answer import Advice, ConnectionResult, unfit
from highway_bench.advice.building import equation_in, start_in
from highway_bench.advice.connections import Connection
from highway_bench.advice.costs import RelativeCost, step_ratio
from highway_bench.advice.finals import QualityVerdict, judged
from highway_bench.advice.learning import Learning, learning_of
from highway_bench.advice.measured import TimedSteps
from highway_bench.advice.page import relation

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
    assert advice.headline == "Take highway (published start)."
    assert advice.lines()[3].startswith("How good is it? highway (published start): final loss 0.8")
    assert "pre-norm (depth-aware start): +25 % [" in advice.lines()[3]
    assert advice.lines()[3].endswith("behind (6 seeds of 90 steps, intervals of 98 %).")


def test_undecided(advise: Callable[..., Advice]) -> None:
    noisy = [0.8, 1.3, 0.7, 1.2, 0.9, 1.25]
    advice = advise({PRE: spread(1.0), GATE: noisy})
    assert advice.verdict == QualityVerdict.UNDECIDED
    assert advice.headline.startswith("Undecided between ")
    assert "it would need " in advice.headline
    assert advice.headline.endswith(" seeds, not 6.")
    assert set(advice.use) == {PRE, GATE}


def test_the_headline_counts_what_was_left_out(advise: Callable[..., Advice]) -> None:
    advice = advise({PRE: spread(1.0), GATE: spread(0.8)})
    left = ConnectionResult(SUM, 8, Learning.LEFT_OUT, RelativeCost("residual"), reason="no time")
    assert replace(advice, results=[*advice.results, left]).headline == (
        "Take highway (published start). 1 of 3 connections and starts was left out: a better one may be among them."
    )
    assert " 2 of 4 connections and starts were" in replace(advice, results=[*advice.results, left, left]).headline


def test_an_interval_that_is_cut_says_so(advise: Callable[..., Advice]) -> None:
    line = advise({PRE: [1e-30, 1.0], GATE: [1.0, 1e-25]}).lines()[3]
    assert "[−100, > +100,000]" in line


def test_one_seed_has_no_interval(advise: Callable[..., Advice]) -> None:
    assert "[one seed]" in advise({PRE: [1.0], GATE: [2.0]}).lines()[3]


def test_what_to_use_is_told_as_one_writes_it(advise: Callable[..., Advice]) -> None:
    advice = advise({PRE: spread(1.0), SUM: spread(0.8)})
    assert advice.lines()[4] == (
        "How is it built? residual (depth-aware start): y = x + H(x); start: each branch H(x) ÷ √L (a constant factor "
        "on the branch); learning rate 0.100. L = 96 connections."
    )
    assert len(advise({PRE: [2.3] * 6, SUM: [2.3] * 6}).lines()) == 4  # there is none to use


def test_the_cheapest_of_several_may_have_the_lowest_loss_too(advise: Callable[..., Advice], cost: Cost) -> None:
    noisy = [0.8, 1.3, 0.7, 1.2, 0.9, 1.25]
    for ratio, lowest in ((0.8, ", which has the lowest loss too"), (1.2, "")):
        headline = advise({PRE: spread(1.0), GATE: noisy}, {"highway": cost("highway", ratio)}).headline
        cheapest = "highway (published start)" if ratio < 1 else "pre-norm (depth-aware start)"
        assert headline.endswith(f"The cheapest of them is {cheapest}{lowest}.")


def test_equal_takes_the_cheaper(advise: Callable[..., Advice], cost: Cost) -> None:
    losses = {PRE: spread(1.0), GATE: spread(1.0001)}
    advice = advise(losses, {"highway": cost("highway", 0.8)})
    assert advice.headline.endswith("are equal: take the cheaper, highway (published start).")
    open_cost = RelativeCost("highway", 0.8, 0.5, 1.2, 10.0)
    assert "their step times do not decide" in advise(losses, {"highway": open_cost}).headline


def test_nothing_learns(advise: Callable[..., Advice]) -> None:
    advice = advise({PRE: spread(2.3), GATE: spread(2.4)})
    assert advice.verdict == QualityVerdict.NONE
    assert advice.headline.startswith("No connection that was tried learns at depth 48 within 90 steps: more --minutes")
    assert advice.use == ()
    assert advice.plain()["use"] == []
    unstable = advise({PRE: spread(2.3), GATE: [0.1, None, 0.1, 0.1, 0.1, 0.1]})
    assert unstable.headline == (
        "No connection to take at depth 48: highway (published start) diverged or failed at a seed, and no other "
        "finalist learns within 90 steps."
    )


def test_a_finalist_that_does_not_learn_is_none_to_use(advise: Callable[..., Advice]) -> None:
    losses = {PRE: spread(1.0), GATE: [0.1, 0.1, 0.1, 9.0, 9.0, 9.0], SUM: spread(1.2, 0.03)}
    assert advise(losses).quality.best == GATE
    results = advise(losses).results
    advice = advise(losses, quality=judged(losses, unfit(losses, results)))
    assert advice.headline == "Take pre-norm (depth-aware start)."
    assert relation(advice, advice.result(GATE)) == "does not learn"
    (behind,) = advice.quality.behind
    (among_two,) = judged({name: losses[name] for name in (PRE, SUM)}).behind
    assert behind.high > among_two.high  # corrected for both comparisons
    every = {PRE: spread(2.3), GATE: spread(2.4)}
    assert unfit(every, advise(every).results) == set()


def test_one_connection_is_no_comparison(advise: Callable[..., Advice]) -> None:
    assert advise({PRE: spread(1.0)}).headline == "Only pre-norm (depth-aware start) was trained."


def test_finalists_that_diverge_are_none_to_take(advise: Callable[..., Advice]) -> None:
    losses: dict[Connection, Sequence[float | None]] = {PRE: spread(1.0), GATE: [0.5, None, 0.5, 0.5, 0.5, 0.5]}
    assert advise(losses).headline == "Take pre-norm (depth-aware start)."
    alone = advise(losses, finalists=[PRE], quality=judged({PRE: spread(1.0)}))
    assert alone.headline == "Take pre-norm (depth-aware start): the others that went on diverged or failed."
    none = advise({PRE: [None] * 6, GATE: losses[GATE]})
    assert none.headline == "No connection to take at depth 48: each one in the finals diverged or failed at a seed."
    assert none.use == ()


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


def test_the_training_line_names_everyone(advise: Callable[..., Advice]) -> None:
    advice = advise({PRE: spread(1.0), GATE: spread(2.3), SUM: [None] * 6})
    assert advice.lines()[1] == (
        "Does it train? learns: pre-norm (depth-aware start); "
        "does not learn within 90 steps: highway (published start); diverges: residual (depth-aware start)."
    )


def test_the_cost_line_has_intervals(advise: Callable[..., Advice], cost: Cost) -> None:
    wide = RelativeCost("highway", 1.5, 1.0, 2.2, 2048.0)
    line = advise({PRE: spread(1.0), GATE: spread(0.8)}, {"highway": wide}).lines()[2]
    assert line == ("What does it cost? highway: step time undecided [1.00, 2.20] × pre-norm's, 2.05 kB saved a layer.")
    untimed = {"highway": RelativeCost("highway")}
    assert advise({PRE: spread(1.0), GATE: spread(0.8)}, untimed).lines()[2] == (
        "What does it cost? highway: step not timed."
    )
    alone = {"highway": RelativeCost("highway", 1.5)}
    assert "step timed in one process (no interval)" in advise({GATE: spread(1), PRE: spread(2)}, alone).lines()[2]
    assert (
        "step time 1.50 [1.47, 1.53]"
        in advise({GATE: spread(1), PRE: spread(2)}, {"highway": cost("highway", 1.5)}).lines()[2]
    )


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
    assert start_in("m:f", PRE) == "each branch H(x) ÷ √L (a constant factor on the branch)"
    assert start_in("dense", PRE) == "last map ÷ √L"
    deep = Connection("deepnorm", "published")
    assert equation_in("m:f", deep) == "y = norm(L^¼·x + H(x))"
    assert start_in("m:f", deep) == "each branch H(x) × (4L)^−¼ (a constant factor on the branch)"
    assert "the maps of H" in equation_in("dense", deep)
    assert "the maps of H" in start_in("dense", deep)
    assert start_in("m:f", Connection("residual", "published")) == "the usual weights"

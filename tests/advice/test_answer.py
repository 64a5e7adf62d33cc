"""What an advice says, from given losses and costs."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.families import family, make_family
from highway_bench.families.parts import FixedScale
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.network import build
from highway_bench.studies.advice.about import building, is_fixed_factor, start_in
from highway_bench.studies.advice.answer import Advice, ConnectionResult, Learning, learning_of, unfit
from highway_bench.studies.advice.before_training import Cost, step_ratio
from highway_bench.studies.advice.finals import QualityVerdict, judged
from highway_bench.studies.advice.request import Connection

PRE = Connection("pre-norm", "depth-aware")
GATE = Connection("highway", "published")
SUM = Connection("residual", "depth-aware")
ABOUT = {
    "layer": "m:f",
    "depth": 48,
    "usual_steps": 600,
    "joins": 96,  # of two modules a layer
    "width": 8,
    "minutes": 10,
    "data": "digits",
    "device": "cpu",
}


def cost(ratio, by=1.02):
    return Cost(IntervalEstimate(ratio, ratio / by, ratio * by, 3), 1000.0)


def advise(losses, costs=None, **words):
    results = [
        ConnectionResult(
            name,
            8,
            learning_of(values, 0, 2.3),
            (costs or {}).get(name, cost(1.0)),
            steps=90,
            rate=0.1,
            loss=None if None in values else math.fsum(map(float, values)) / len(values),
            runs=len(values),
            test_accuracy=0.9,
        )
        for name, values in losses.items()
    ]
    quality = words.get("quality", judged(losses))
    return Advice(ABOUT, results, quality, list(losses), (10, 30, 90), 48, [], Path("store.sqlite"))


def spread(mean, by=0.01):
    return [mean * (1 + by * (-1) ** seed) for seed in range(6)]


def test_take():
    advice = advise({PRE: spread(1.0), GATE: spread(0.8)})
    assert (advice.verdict, advice.use) == (QualityVerdict.TAKE, (GATE,))
    assert "highway (published start)" in advice.headline
    assert "+25 % [" in advice.lines()[3]


def test_undecided():
    advice = advise({PRE: spread(1.0), GATE: [0.8, 1.3, 0.7, 1.2, 0.9, 1.25]})
    assert advice.verdict == QualityVerdict.UNDECIDED
    assert set(advice.use) == {PRE, GATE}
    assert "need" in advice.headline


def test_equal_takes_the_cheaper():
    losses = {PRE: spread(1.0), GATE: spread(1.0001)}
    assert "take the cheaper, highway" in advise(losses, {GATE: cost(0.8)}).headline
    assert "do not decide" in advise(losses, {GATE: cost(0.8, 1.5)}).headline


def test_nothing_learns():
    advice = advise({PRE: spread(2.3), GATE: spread(2.4)})
    assert (advice.verdict, advice.use, advice.plain()["use"]) == (QualityVerdict.NONE, (), [])
    assert len(advice.lines()) == 4  # there is none to build


def test_a_finalist_that_does_not_learn_is_none_to_use():
    losses = {PRE: spread(1.0), GATE: [0.1, 0.1, 0.1, 9.0, 9.0, 9.0], SUM: spread(1.2, 0.03)}
    assert advise(losses).quality.best == GATE
    advice = advise(losses, quality=judged(losses, unfit(losses, advise(losses).results)))
    assert advice.use == (PRE,)
    (behind,) = advice.quality.behind
    (among_two,) = judged({name: losses[name] for name in (PRE, SUM)}).behind
    assert behind.difference.high > among_two.difference.high  # corrected for both comparisons
    every = {PRE: spread(2.3), GATE: spread(2.4)}
    assert unfit(every, advise(every).results) == set()


def test_finalists_that_diverge_are_none_to_take():
    lost = [0.5, None, 0.5, 0.5, 0.5, 0.5]
    assert advise({PRE: spread(1.0), GATE: lost}).use == (PRE,)
    assert advise({PRE: [None] * 6, GATE: lost}).use == ()


@pytest.mark.parametrize(
    ("losses", "succeeded", "word"),
    [
        ([0.1, 0.1], 2, Learning.TRAINS),
        ([0.1, 0.3], 1, Learning.LEARNS),
        ([2.2, 2.3], 0, Learning.FAILS),
        ([0.1, None], 1, Learning.UNSTABLE),
        ([None, None], 0, Learning.DIVERGES),
    ],
)
def test_does_it_train(losses, succeeded, word):
    assert learning_of(losses, succeeded, 2.3) == word


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (cost(1.5, 1.5), "undecided [1.00, 2.25]"),
        (Cost(), "not timed"),
        (Cost(IntervalEstimate(1.5, math.nan, math.nan, 1)), "no interval"),
        (cost(1.5), "1.50 [1.47, 1.53]"),
    ],
)
def test_the_cost_line_has_intervals(given, says):
    assert says in advise({GATE: spread(1), PRE: spread(2)}, {GATE: given}).lines()[2]


def test_plain_values_are_json():
    plain = advise({PRE: spread(1.0), GATE: [*spread(0.8)[:5], None]}, {GATE: Cost()}).plain()
    printed = json.loads(json.dumps(plain, allow_nan=False))
    assert printed["use"] == [{"block": "pre-norm", "start": "depth-aware"}]
    gate = next(one for one in printed["connections"] if one["block"] == "highway")
    assert (gate["loss"], gate["step_ratio"], gate["behind_low"], gate["at_start"]) == (None,) * 4
    assert gate["leader"] is False


def test_step_ratios_are_of_the_same_rounds():
    same = {"plain": [1.0] * 6, "process": [0, 0, 1, 1, 2, 2]}
    own, reference = ({"own": times, "wall": times, **same} for times in ([3.0, 3.0, 3.1, 3.1, 2.9, 2.9], [2.0] * 6))
    ratio = step_ratio(own, reference)
    assert ratio.value == pytest.approx(1.5, rel=0.01)
    assert ratio.low < ratio.value < ratio.high
    itself = step_ratio(reference, reference)
    assert (itself.value, itself.low, itself.high) == (1, 1, 1)
    for other in (reference | {"plain": [9.0] * 6}, {}):
        assert math.isnan(step_ratio(own, other).value)


def test_how_a_connection_is_built_in_a_layer_of_ones_own():
    assert "÷ √L" in start_in("m:f", PRE)
    assert start_in("dense", PRE) == "last map ÷ √L"
    text = building("m:f", Connection("deepnorm", "published"), 0.1)
    assert "L^¼·x" in text
    assert "(4L)^−¼" in text


def own_layer(width):
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())


@pytest.mark.parametrize(
    "layer", [make_family("bilstm"), make_family("dense-pair"), family(own_layer)], ids=["bilstm", "dense-pair", "own"]
)
def test_a_start_is_a_constant_factor_where_a_network_has_one(layer):
    for spec in map(blocks.get, blocks.names()):
        for start in spec.starts if spec.refusal(layer) is None else ():
            if start.init in layer.inits:
                with torch.device("meta"):
                    network = build(spec.name, layer, width=8, depth=3, start=start.name)
                has_one = any(isinstance(part, FixedScale) for part in network.modules())
                assert is_fixed_factor(layer.name, spec.name, start.about) == has_one, (spec.name, start.name)

"""Gates at 50 layers: the protocol, and the verdicts for given networks."""

import math

import pandas as pd
import pytest

from highway_bench.errors import BadInput
from highway_bench.frames.gates import layers, over_seeds
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.gates import CARRYING, DEPTH, PUBLISHED, STATEMENTS
from highway_bench.studies.reproduce.request import Request
from tests.reproduce import conftest
from tests.reproduce.conftest import C, N, R, verdicts

STUDY = reproductions.get("gates")


def as_published(cell, layer):
    """Metrics of highway layer ``layer`` in a network that behaves like the paper's, with small differences by seed."""
    early, wiggle = layer <= 14, 1e-3 * (cell.seed - STUDY.version.seen)
    # The paper's layers 15 to 45, 31 of 49, contribute nothing
    error = 0.01 + (0.02 if layer < 14 else 0.0011 if layer > 44 else 0.0) + 1e-2 * wiggle
    values = {"stream_change": (1.0 if early else 0.1) + wiggle, "lesion_loss": 0.1 + error, "lesion_error": error}
    if cell.block == "highway":
        values |= {
            "gate_bias_start": -2.0,
            "gate_bias_end": -2.5 - wiggle,
            "gate_activity": 0.1,
            "gates_shut": 0.5,
            "gates_full": 0.01 + wiggle,
            "gates_open_one": 0.05,
            "gates_open_average": 0.02,
            "gates_open_some": 0.5,
            "gate_class_spread": (0.2 if early else 0.05) + wiggle,
        }
    return values


def whole(cell):
    """Metrics of the whole network."""
    gated = {"sparsity_one": 0.8 + 1e-3 * (cell.seed - STUDY.version.seen), "sparsity_average": 0.3}
    values = {"final_loss": 0.01, "success": 1.0, "rate": 0.3, "intact_loss": 0.1, "intact_error": 0.01}
    return values | (gated if cell.block == "highway" else {})


def rows_of(
    inside=as_published,
    *,
    seeds=10,
    trains=lambda cell: True,
):
    def metrics(cell):
        if not trains(cell):
            return {"success": 0.0, "rate": 0.3}
        layers = range(1, DEPTH + 1)
        by_layer = {(name, "layer", at): value for at in layers for name, value in inside(cell, at).items()}
        return {**whole(cell), **by_layer}

    return conftest.rows_of({cell: metrics(cell) for cell in STUDY.cells(Request(seeds=seeds))})


def test_epochs_give_steps():
    assert {cell.recipe["steps"] for cell in STUDY.cells(Request(scale="paper", epochs=2))} == {2 * 600}
    with pytest.raises(BadInput, match="not both"):
        STUDY.cells(Request(epochs=1, steps=1))


def test_networks_that_behave_as_published_reproduce_every_claim():
    outcome = STUDY.outcome(rows_of(), Request())
    assert verdicts(outcome) == [R] * (1 + len(STATEMENTS))
    assert outcome.findings[1].measured.startswith("at bias −2: −0.504 [")
    assert [table.name for table in outcome.tables] == ["gates-networks", "gates-layers"]


def test_the_networks_name_the_activation_that_their_search_chose():
    (cell, *_) = STUDY.cells(Request(seeds=1))
    found = [({"activation": "tanh"}, 0.3, 1.0), ({"activation": "tanh"}, 0.1, 0.0), ({}, 1.0, 0.0)]
    searched = {
        cell.but(task="trainability", family_options=options, trial=number, recipe={"rate": rate}): {
            "rate": rate,
            "success": success,
        }
        for number, (options, rate, success) in enumerate(found)
    }
    trials = conftest.rows_of(searched)
    trials["digest"] = "t" + trials["digest"]
    (networks, _) = STUDY.outcome(pd.concat([rows_of(), trials]), Request()).tables
    texts = [dict(zip([head.text for head in networks.heads], entry, strict=True)) for entry in networks.entries]
    (own,) = (one for one in texts if one["network"] == PUBLISHED)
    assert (own["activation"], own["trials that train"]) == ("tanh", "relu 0 of 1, tanh 1 of 2")


def test_networks_that_do_the_opposite_contradict_every_claim():
    def inside(cell, layer):
        seed = cell.seed - STUDY.version.seen
        values = as_published(cell, DEPTH + 1 - layer)
        if cell.block == "highway":
            values |= {"gate_bias_end": -1.5 - 1e-3 * seed, "gates_full": 1e-6 * seed}
        return values | {"lesion_error": 0.01 + 1e-5 * seed + (0.0 if layer <= 14 else 0.02)}

    rows = rows_of(inside)
    rows.loc[rows["metric"] == "sparsity_average", "value"] = 0.9
    result = verdicts(STUDY.outcome(rows, Request()))[1:]
    assert result == [C] * (len(STATEMENTS) - 1) + [N]  # a claim that something is possible is never contradicted


def test_one_of_the_silent_layers_that_matters_is_enough():
    def inside(cell, layer):
        return as_published(cell, layer) | ({"lesion_error": 0.02} if layer == 30 else {})

    assert verdicts(STUDY.outcome(rows_of(inside), Request()), "any of layers") == [C]


@pytest.mark.parametrize(
    ("seeds", "trains"),
    [
        (1, lambda cell: True),  # no interval
        (10, lambda cell: "gate_bias" not in cell.block_options),  # the carrying start is reported and decides nothing
        (10, lambda cell: False),
    ],
)
def test_without_enough_networks_that_train_nothing_is_decided(seeds, trains):
    outcome = STUDY.outcome(rows_of(seeds=seeds, trains=trains), Request())
    assert verdicts(outcome)[1:] == [N] * len(STATEMENTS)
    networks = {entries[0]: entries[1] for entries in outcome.tables[0].entries}
    cells = STUDY.cells(Request(seeds=1))
    expected = {f"{seeds * trains(cell)} of {seeds}" for cell in cells if cell.block_options}
    assert (networks.keys(), {networks[PUBLISHED]}) == ({PUBLISHED, CARRYING, "pre-norm"}, expected)


def test_seeds_that_did_not_end_count_as_planned():
    rows = rows_of(trains=lambda cell: (cell.seed - STUDY.version.seen) < 4)
    gone = (rows["seed"] >= STUDY.version.seen + 4) & (rows["metric"] == "success")
    rows.loc[gone, "value"] = math.nan
    first = STUDY.outcome(rows, Request()).findings[0]
    assert (first.quantities[0].value, first.quantities[0].n) == (40, 10)
    assert first.verdict == N


def test_layers_by_network_and_over_seeds():
    table = layers(rows_of(seeds=3))
    assert len(table) == 3 * 3 * DEPTH
    assert table.groupby("label")["lesion_error_change"].max().to_dict() == pytest.approx(
        dict.fromkeys((PUBLISHED, CARRYING, "pre-norm"), 0.02 + 2e-5)
    )
    mean = over_seeds(table, ["label", "layer"], ["gate_bias_end"]).set_index(["label", "layer"])
    result = mean.loc[(CARRYING, 7)]
    assert (result["n"], result["gate_bias_end"]) == (3, pytest.approx(-2.501))
    assert result["gate_bias_end_low"] == pytest.approx(-2.501 - 4.3027 * 1e-3 / math.sqrt(3), rel=1e-6)
    assert mean.loc["pre-norm"]["gate_bias_end"].isna().all()

"""Gates at 50 layers: the protocol, and the verdicts for given networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.frames.gates import layers, over_seeds
from highway_bench.frames.rows import prepared
from highway_bench.reproduce.base import Conclusion, reproductions
from highway_bench.reproduce.claims import Verdict
from highway_bench.reproduce.gates import CARRYING, DEPTH, PUBLISHED, STATEMENTS
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import row

STUDY = reproductions.get("gates")
Numbers = dict[str, float]


def as_published(cell: Cell, layer: int) -> Numbers:
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


def whole(cell: Cell) -> Numbers:
    """Metrics of the whole network."""
    values = {"final_loss": 0.01, "success": 1.0, "rate": 0.3, "intact_loss": 0.1, "intact_error": 0.01}
    return values | (
        {"sparsity_one": 0.8 + 1e-3 * (cell.seed - STUDY.version.seen), "sparsity_average": 0.3}
        if cell.block == "highway"
        else {}
    )


def rows_of(
    inside: Callable[[Cell, int], Numbers] = as_published,
    *,
    seeds: int = 10,
    trains: Callable[[Cell], bool] = lambda cell: True,
) -> pd.DataFrame:
    rows = []
    for number, cell in enumerate(STUDY.cells(Request(seeds=seeds))):
        common: dict[str, Any] = cell.columns() | {
            "status": "ok",
            "time_utc": "2026-01-01",
            "machine": "m",
            "digest": str(number),
        }
        result = whole(cell) if trains(cell) else {"final_loss": None, "success": 0.0, "rate": 0.3}
        rows += [row(**common, metric=metric, value=value) for metric, value in result.items()]
        for layer in range(1, DEPTH + 1) if trains(cell) else ():
            rows += [
                row(**common, metric=metric, value=value, axis="layer") | {"index": float(layer)}
                for metric, value in inside(cell, layer).items()
            ]
    return prepared(pd.DataFrame(rows))


def verdicts(outcome: Conclusion) -> list[Verdict]:
    return [one.verdict for one in outcome.findings]


def test_the_protocol() -> None:
    cells = STUDY.cells(Request())
    assert {(cell.depth, cell.width, cell.batch_size, cell.dataset) for cell in cells if cell.block == "highway"} == {
        (49, 50, 100, "mnist-5k")
    }
    assert {cell.recipe["steps"] for cell in cells} == {1_500}
    kinds = {(cell.block, cell.block_options.get("gate_bias")) for cell in cells}
    assert kinds == {("highway", -2), ("highway", None), ("pre-norm", None)}
    assert len(cells) == len(set(cells)) == 3 * 10
    (paper,) = {(cell.dataset, cell.recipe["steps"]) for cell in STUDY.cells(Request(scale="paper", epochs=2))}
    assert paper == ("mnist", 2 * 600)
    with pytest.raises(BadInput, match=r"^give epochs or steps, not both$"):
        STUDY.cells(Request(epochs=1, steps=1))


def test_networks_that_behave_as_published_reproduce_every_claim() -> None:
    outcome = STUDY.outcome(rows_of(), Request())
    assert verdicts(outcome) == [Verdict.REPRODUCED] * (1 + len(STATEMENTS))
    assert (
        outcome.findings[0].measured
        == "at bias −2: 100 % [72.2, 100] (n = 10); at bias −ln L: 100 % [72.2, 100] (n = 10)"
    )
    assert outcome.findings[1].measured.startswith("at bias −2: −0.504 [")
    assert [table.name for table in outcome.tables] == ["gates-networks", "gates-layers"]


def test_the_networks_name_the_activation_that_their_search_chose() -> None:
    rows = rows_of()
    cells = STUDY.cells(Request(seeds=1))
    trials = []
    for number, (options, rate, success) in enumerate(
        [({"activation": "tanh"}, 0.3, 1.0), ({"activation": "tanh"}, 0.1, 0.0), ({}, 1.0, 0.0)]
    ):
        for cell in cells:
            trial = cell.but(task="trainability", family_options=options, trial=number, recipe={"rate": rate})
            common = trial.columns() | {"status": "ok", "time_utc": "2026-01-01", "machine": "m", "digest": trial.key}
            trials += [
                row(**common, metric=name, value=value) for name, value in (("rate", rate), ("success", success))
            ]
    unprepared = rows.drop(columns=["label", "family_label"])
    (networks, _) = STUDY.outcome(prepared(pd.concat([unprepared, pd.DataFrame(trials)])), Request()).tables
    texts = [dict(zip([head.text for head in networks.heads], entry, strict=True)) for entry in networks.entries]
    assert {one["activation"] for one in texts} == {"tanh"}
    assert {one["trials that train"] for one in texts} == {"relu 0 of 1, tanh 1 of 2"}


def test_networks_that_do_the_opposite_contradict_every_claim() -> None:
    def inside(cell: Cell, layer: int) -> Numbers:
        values = as_published(cell, DEPTH + 1 - layer)
        if cell.block == "highway":
            values |= {
                "gate_bias_end": -1.5 - 1e-3 * (cell.seed - STUDY.version.seen),
                "gates_full": 1e-6 * (cell.seed - STUDY.version.seen),
            }
        return values | {
            "lesion_error": 0.01 + 1e-5 * (cell.seed - STUDY.version.seen) + (0.0 if layer <= 14 else 0.02)
        }

    rows = rows_of(inside)
    rows.loc[rows["metric"] == "sparsity_average", "value"] = 0.9
    result = STUDY.outcome(rows, Request()).findings[1:]
    assert [one.verdict for one in result[:-1]] == [Verdict.CONTRADICTED] * (len(STATEMENTS) - 1)
    assert result[-1].verdict == Verdict.NOT_TESTABLE  # a claim that something is possible is never contradicted


def test_one_seed_has_no_interval_and_decides_nothing() -> None:
    outcome = STUDY.outcome(rows_of(seeds=1), Request())
    assert verdicts(outcome)[1:] == [Verdict.NOT_TESTABLE] * len(STATEMENTS)


def test_one_of_the_silent_layers_that_matters_is_enough() -> None:
    def inside(cell: Cell, layer: int) -> Numbers:
        return as_published(cell, layer) | ({"lesion_error": 0.02} if layer == 30 else {})

    result = next(
        one for one in STUDY.outcome(rows_of(inside), Request()).findings if "any of layers" in one.claim.statement
    )
    assert result.verdict == Verdict.CONTRADICTED


def test_seeds_that_did_not_end_count_as_planned() -> None:
    rows = rows_of(trains=lambda cell: (cell.seed - STUDY.version.seen) < 4)
    gone = (rows["seed"] >= STUDY.version.seen + 4) & (rows["metric"] == "success")
    rows.loc[gone, "value"] = math.nan
    first = STUDY.outcome(rows, Request()).findings[0]
    assert first.measured.startswith("at bias −2: 40.0 % [16.8, 68.7] (n = 10)")
    assert first.verdict == Verdict.NOT_TESTABLE


def test_the_carrying_start_is_reported_and_decides_nothing() -> None:
    outcome = STUDY.outcome(rows_of(trains=lambda cell: "gate_bias" not in cell.block_options), Request())
    assert verdicts(outcome) == [Verdict.NOT_TESTABLE] * (1 + len(STATEMENTS))
    assert outcome.findings[1].measured.startswith("at bias −ln L: ")
    assert "at bias −2:" not in outcome.findings[1].measured
    networks = {entries[0]: entries[1] for entries in outcome.tables[0].entries}
    assert networks == {PUBLISHED: "0 of 10", CARRYING: "10 of 10", "pre-norm": "10 of 10"}


def test_without_a_trained_network_nothing_is_decided() -> None:
    outcome = STUDY.outcome(rows_of(trains=lambda cell: False), Request())
    assert verdicts(outcome) == [Verdict.NOT_TESTABLE] * (1 + len(STATEMENTS))
    assert len(outcome.tables) == 1


def test_layers_by_network_and_over_seeds() -> None:
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

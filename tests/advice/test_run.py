"""Whole advices of tiny networks: the same answer again without measuring, and after an interruption."""

import itertools
import json
from dataclasses import replace

import pytest

from highway_bench.errors import BadInput, UnknownName
from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.report.choice.columns import typed
from highway_bench.report.choice.ranking import ranking
from highway_bench.results import Store
from highway_bench.studies.advice.answer import Learning
from highway_bench.studies.advice.budget import HalvingPlan, halving_plan
from highway_bench.studies.advice.finals import FinalRuns, QualityVerdict
from highway_bench.studies.advice.measured import MeasuredCells
from highway_bench.studies.advice.page import relation, wide_rows
from highway_bench.studies.advice.request import FINAL_SEEDS, Connection
from highway_bench.studies.advice.run import PACE_STEPS, advise

WORDS = {"depth": 2, "minutes": 2.0, "width": 8, "batch_size": 16, "data": "digits", "workers": 1}
PLAN = "highway_bench.studies.advice.run.halving_plan"


@pytest.fixture(scope="module")
def run(tmp_path_factory, inline, brief):
    """An advice and the engine that measured it; advices of this module share a folder."""
    shared = tmp_path_factory.mktemp("advice")

    def make(layer="dense", most=float("inf"), **changes):
        engine = inline(most=most)
        return advise(layer, **WORDS | {"block": "plain", "out": shared, "engine": engine} | changes), engine

    return make


@pytest.fixture(scope="module")
def first(run):
    return run()


def test_an_advice_and_the_same_again(run, first):
    advice, engine = first
    assert {cell.task for cell in engine.cells} == {"trainability", "throughput", "memory", "propagation"}
    assert advice.verdict in set(QualityVerdict)
    assert {one.connection.block for one in advice.results} == {"pre-norm", "plain"}
    assert all(one.learning != Learning.ERROR and one.cost.saved > 0 for one in advice.results)
    assert {one.at_start for one in advice.results} == {"in range"}  # two layers of 8 units
    assert advice.ladder == (1, 3)
    assert len(advice.finalists) in (2, 3, 4)
    assert len(advice.tables()["connections"]) == len(advice.results)
    again, second = run()
    assert second.cells == []
    assert again.plain() == advice.plain()
    json.dumps(advice.plain(), allow_nan=False)


def test_an_option_that_is_none_has_near_names(run):
    with pytest.raises(UnknownName, match="did you mean width"):
        run(widht=8)


def test_rows_have_the_losses_of_the_finals_and_the_places_of_the_advice(first):
    """As if the finalists learnt."""
    advice = first[0]
    words = dict.fromkeys(advice.finalists, Learning.LEARNS)
    results = [replace(one, learning=words.get(one.connection, one.learning)) for one in advice.results]
    advice = replace(advice, results=results)
    with Store(advice.store, read_only=True) as store:
        kind, records = wide_rows(advice, Results(store.frame(), store.runs()))
    table = typed(records)
    rows = {Connection(row["connection"], row["start"]): row for row in rows_of(table)}
    assert rows.keys() == {one.connection for one in advice.results}
    for one in advice.results:
        row = rows[one.connection]
        if one.connection not in advice.finalists:
            assert (row["outcome"], row["seeds"]) == ("not measured", 0)
            continue
        assert (row["outcome"], row["trains"], row["seeds"], row["rate"]) == ("learns", 0, one.runs, one.rate)
        assert row["loss"] == pytest.approx(one.loss, rel=0.1)  # the mean is a geometric one
        assert one.connection.block != "pre-norm" or row["not_reached"] < one.runs
        places = {"lowest loss": "best", "behind": "behind"}
        assert row["loss_place"] == places.get(relation(advice, one), "not separated")
    assert list(table["held_out_place"]).count("best") == 1
    assert ranking(table, kind, 2, "loss").take == advice.use[0].block


def test_a_seed_that_failed_says_nothing_about_its_network(run, first, monkeypatch):
    finals, value = FinalRuns.at_rates, MeasuredCells.value

    def one_fails(self, *words):
        runs = finals(self, *words)
        cell = list(runs.values())[-1][0]
        self.halving.measured.failures[cell] = "timeout: after 1 s"
        lacking = lambda of, one, metric: None if one == cell else value(of, one, metric)  # noqa: E731
        monkeypatch.setattr(MeasuredCells, "value", lacking)
        return runs

    monkeypatch.setattr(FinalRuns, "at_rates", one_fails)
    advice, _ = run()
    result, *_ = (one for one in advice.results if one.learning == Learning.ERROR)
    assert result.reason == "timeout: after 1 s"
    assert relation(advice, result) == "a run failed"
    assert (advice.exit_status, first[0].exit_status) == (1, 0)
    assert "timeout: after 1 s" in advice.notes[-1]


def test_the_better_of_two_rates_counts_for_a_finalist(run, tmp_path, monkeypatch):
    """The higher its rate, the lower the loss of plain; but at 1 every run of the finals diverges."""
    value = MeasuredCells.value

    def unstable(self, cell, metric):
        if cell.block != "plain" or metric != "final_loss":
            return value(self, cell, metric)
        rate = cell.recipe["rate"]
        return None if rate == 1 and cell.seed >= FINAL_SEEDS else 1 / rate

    monkeypatch.setattr(MeasuredCells, "value", unstable)
    advice, _ = run(out=tmp_path)
    plain = next(one for one in map(advice.result, advice.finalists) if one.connection.block == "plain")
    assert (plain.rate, plain.loss) == (0.3, pytest.approx(1 / 0.3))
    assert any("rate 0.3" in note for note in advice.notes)
    again, engine = run(out=tmp_path)
    assert engine.cells == []
    assert again.plain() == advice.plain()


@pytest.mark.slow
def test_an_interrupted_advice_goes_on(run, tmp_path):
    def stored():
        (file,) = tmp_path.glob("*/store.sqlite")
        with Store(file, read_only=True) as store:
            return set(store.digests())

    with pytest.raises(KeyboardInterrupt):
        run(most=10, out=tmp_path)
    before = stored()
    assert before
    _, engine = run(out=tmp_path)
    assert len(engine.cells) == len(stored() - before) > 0


def test_what_time_leaves_out_is_named(run, tmp_path, monkeypatch):
    monkeypatch.setattr(PLAN, lambda *_: HalvingPlan(2, 2, 1))
    advice, _ = run(out=tmp_path)
    left = [one for one in advice.results if one.learning == Learning.LEFT_OUT]
    assert all("2 connections" in str(one.reason) for one in left)
    assert Connection("plain", "published") in {one.connection for one in left}
    assert "left out: " in advice.lines()[1]


@pytest.mark.parametrize(
    ("check", "measured"), [(1, {"trainability"}), (2, {"trainability", "memory", "throughput"})], ids=["pace", "costs"]
)
def test_a_pace_that_was_too_slow_is_measured_again(run, tmp_path, monkeypatch, check, measured):
    """The minutes are checked with the pace, so that no costs are measured for nothing, and again with the costs."""
    calls = itertools.count(1)

    def refuse(*words):
        if next(calls) % check == 0:
            raise BadInput("too few")
        return halving_plan(*words)

    with monkeypatch.context() as busy:
        busy.setattr(PLAN, refuse)
        for _ in range(2):
            with pytest.raises(BadInput, match="too few"):
                run(out=tmp_path)
            assert all(json.loads(one.read_text("utf-8")) == {} for one in tmp_path.glob("*/decisions.json"))
            (file,) = tmp_path.glob("*/store.sqlite")
            with Store(file, read_only=True) as store:
                assert set(store.frame()["task"]) == measured
    _, engine = run(out=tmp_path)
    assert {cell.seed for cell in engine.cells if cell.recipe.get("steps") == PACE_STEPS} == {4, 5}


def test_a_layer_of_ones_own_with_its_data_and_loss(layers, run):
    words = {"data": f"{layers}:batches", "loss": f"{layers}:loss", "block": ("residual",)}
    advice, engine = run(f"{layers}:fine", **words)
    assert advice.about["layer"] == f"{layers}:fine"
    trained = [cell for cell in engine.cells if cell.task == "trainability"]
    assert {(cell.recipe["loss"], cell.dataset) for cell in trained} == {(f"{layers}:loss", "batches")}
    assert all(one.learning != Learning.ERROR for one in advice.results)

"""Whole advices of tiny networks: the same answer again without measuring, and after an interruption."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.report.choice.columns import typed
from highway_bench.report.choice.ranking import ranking
from highway_bench.results import Store
from highway_bench.studies.advice.answer import Advice
from highway_bench.studies.advice.budget import halving_plan
from highway_bench.studies.advice.connections import Connection
from highway_bench.studies.advice.final_runs import FinalRuns
from highway_bench.studies.advice.finals import QualityVerdict
from highway_bench.studies.advice.learning import Learning
from highway_bench.studies.advice.measured import MeasuredCells
from highway_bench.studies.advice.page import relation
from highway_bench.studies.advice.request import FINAL_SEEDS
from highway_bench.studies.advice.run import advise
from highway_bench.studies.advice.wide_rows import wide_rows
from highway_bench.studies.advice.work import PACE_STEPS

WORDS: dict[str, Any] = {"depth": 2, "minutes": 2.0, "width": 8, "batch_size": 16, "data": "digits", "workers": 1}


Run = Callable[..., tuple[Advice, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, inline: Callable[..., Any], brief: None) -> Run:
    """An advice and the engine that measured it; advices of this module share a folder."""
    shared = tmp_path_factory.mktemp("advice")

    def make(layer: str = "dense", most: float = float("inf"), **changes: Any) -> tuple[Advice, Any]:
        engine = inline(most=most)
        words = {"block": ("plain",), "out": shared, "engine": engine}
        return advise(layer, **WORDS | words | changes), engine

    return make


@pytest.fixture(scope="module")
def first(run: Run) -> tuple[Advice, Any]:
    return run()


def test_an_advice_and_the_same_again(run: Run, first: tuple[Advice, Any]) -> None:
    advice, engine = first
    assert {cell.task for cell in engine.cells} == {"trainability", "throughput", "memory", "propagation"}
    assert advice.verdict in set(QualityVerdict)
    assert {one.connection.block for one in advice.results} == {"pre-norm", "plain"}
    assert all(one.learning != Learning.FAILED for one in advice.results)
    assert all(one.cost.saved > 0 for one in advice.results)
    assert {one.at_start for one in advice.results} == {"in range"}  # two layers of 8 units
    assert advice.ladder == (1, 3)
    assert len(advice.finalists) in (2, 3, 4)
    again, second = run()
    assert second.cells == []
    assert again.plain() == advice.plain()
    json.dumps(advice.plain(), allow_nan=False)


def learnt(advice: Advice) -> Advice:
    """``advice`` as if its finalists learnt."""
    words = dict.fromkeys(advice.finalists, Learning.LEARNS)
    return replace(
        advice, results=[replace(one, learning=words.get(one.connection, one.learning)) for one in advice.results]
    )


def test_rows_have_the_losses_of_the_finals_and_the_places_of_the_advice(first: tuple[Advice, Any]) -> None:
    advice = learnt(first[0])
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
        assert row["accuracy"] == pytest.approx(one.accuracy)
        assert row["loss"] == pytest.approx(one.loss, rel=0.1)  # the mean is a geometric one
        assert one.connection.block != "pre-norm" or row["not_reached"] < one.runs
        places = {"lowest loss": "best", "behind": "behind"}
        assert row["loss_place"] == places.get(relation(advice, one), "not separated")
    assert list(table["held_out_place"]).count("best") == 1
    assert ranking(table, kind, 2, "loss").take == advice.use[0].block


def test_a_seed_that_failed_says_nothing_about_its_network(
    run: Run, first: tuple[Advice, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    finals, found = FinalRuns.at_rates, {}

    def one_fails(self: FinalRuns, *words: Any) -> Any:
        runs = finals(self, *words)
        connection, (cell, *_) = list(runs.items())[-1]
        self.measured.failures[cell] = "timeout: after 1 s"
        value = MeasuredCells.value
        lacking = lambda of, one, metric: None if one == cell else value(of, one, metric)  # noqa: E731
        monkeypatch.setattr(MeasuredCells, "value", lacking)
        found["connection"] = connection
        return runs

    monkeypatch.setattr(FinalRuns, "at_rates", one_fails)
    advice, _ = run()
    result = advice.result(found["connection"])
    assert (result.learning, result.reason) == (Learning.FAILED, "timeout: after 1 s")
    assert relation(advice, result) == "a run failed"
    assert (advice.exit_status, first[0].exit_status) == (1, 0)
    assert "timeout: after 1 s" in advice.notes[-1]


def test_the_better_of_two_rates_counts_for_a_finalist(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The higher its rate, the lower the loss of plain; but at 1 every run of the finals diverges."""
    value = MeasuredCells.value

    def unstable(self: MeasuredCells, cell: Cell, metric: str) -> float | None:
        if cell.block != "plain" or metric != "final_loss":
            return value(self, cell, metric)
        rate = cell.recipe["rate"]
        return None if rate == 1 and cell.seed >= FINAL_SEEDS else 1 / rate

    monkeypatch.setattr(MeasuredCells, "value", unstable)
    advice, _ = run(out=tmp_path)
    plain = next(
        one for one in advice.results if one.connection.block == "plain" and one.connection in advice.finalists
    )
    assert (plain.rate, plain.loss) == (0.3, pytest.approx(1 / 0.3))
    assert any("judged with the learning rate 0.3" in note for note in advice.notes)
    again, engine = run(out=tmp_path)
    assert engine.cells == []
    assert again.plain() == advice.plain()


@pytest.mark.slow
def test_an_interrupted_advice_goes_on(run: Run, tmp_path: Path) -> None:
    words = {"out": tmp_path / "out", "block": ("plain",)}
    with pytest.raises(KeyboardInterrupt):
        run(most=10, **words)
    (store,) = (tmp_path / "out").glob("*/store.sqlite")
    with Store(store, read_only=True) as opened:
        before = set(opened.digests())
    assert before
    _, engine = run(**words)
    with Store(store, read_only=True) as opened:
        every = set(opened.digests())
    assert len(engine.cells) == len(every - before) > 0


def test_what_time_leaves_out_is_named(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def least(*_: object) -> Any:
        from highway_bench.studies.advice.budget import HalvingPlan

        return HalvingPlan(2, 2, 1)

    monkeypatch.setattr("highway_bench.studies.advice.work.halving_plan", least)
    advice, _ = run(out=tmp_path)
    left = [one for one in advice.results if one.learning == Learning.LEFT_OUT]
    assert all("2 connections" in one.reason for one in left)
    assert Connection("plain", "published") in {one.connection for one in left}
    assert "left out: " in advice.lines()[1]


@pytest.mark.parametrize(
    ("check", "measured"), [(1, {"trainability"}), (2, {"trainability", "memory", "throughput"})], ids=["pace", "costs"]
)
def test_a_pace_that_was_too_slow_is_measured_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: int, measured: set[str]
) -> None:
    """The minutes are checked with the pace, so that no costs are measured for nothing, and again with the costs."""
    calls = itertools.count()

    def refuse(*words: Any) -> Any:
        if next(calls) % check == check - 1:
            raise BadInput("2 minutes are too few")
        return halving_plan(*words)

    def paced(engine: Any) -> set[int]:
        return {
            cell.seed for cell in engine.cells if cell.task == "trainability" and cell.recipe["steps"] == PACE_STEPS
        }

    with monkeypatch.context() as busy:
        busy.setattr("highway_bench.studies.advice.work.halving_plan", refuse)
        for _ in range(2):
            with pytest.raises(BadInput, match="too few"):
                run(out=tmp_path)
            assert [json.loads(one.read_text("utf-8")) for one in tmp_path.glob("*/decisions.json")] == [{}] * (
                check - 1
            )
            (file,) = tmp_path.glob("*/store.sqlite")
            with Store(file, read_only=True) as store:
                assert set(store.frame()["task"]) == measured
    _, engine = run(out=tmp_path)
    assert paced(engine) == {4, 5}


def test_a_layer_of_ones_own_with_its_data_and_loss(layers: str, run: Run) -> None:
    words = {"data": f"{layers}:batches", "loss": f"{layers}:loss", "block": ("residual",)}
    advice, engine = run(f"{layers}:fine", **words)
    assert advice.about["layer"] == f"{layers}:fine"
    trained = [cell for cell in engine.cells if cell.task == "trainability"]
    assert {cell.recipe["loss"] for cell in trained} == {f"{layers}:loss"}
    assert {cell.dataset for cell in trained} == {"batches"}
    assert all(one.learning != Learning.FAILED for one in advice.results)

"""Whole advices of tiny networks: the same answer again without measuring, and after an interruption."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from benches.proofs import advice_docs
from highway_bench.advice.answer import Advice
from highway_bench.advice.budget import halving_plan
from highway_bench.advice.connections import Connection
from highway_bench.advice.final_runs import FinalRuns
from highway_bench.advice.finals import QualityVerdict
from highway_bench.advice.learning import Learning
from highway_bench.advice.measured import MeasuredCells
from highway_bench.advice.page import relation, write_page
from highway_bench.advice.request import FINAL_SEEDS
from highway_bench.advice.run import advise
from highway_bench.advice.wide_rows import wide_rows
from highway_bench.advice.work import PACE_STEPS
from highway_bench.cell import Cell
from highway_bench.cli import app
from highway_bench.cli._output import JSON_SCHEMA
from highway_bench.errors import BadInput
from highway_bench.frames.results import Results
from highway_bench.frames.rows import rows_of
from highway_bench.report.choice.columns import typed
from highway_bench.report.choice.ranking import ranking
from highway_bench.results import Store
from tests.report.test_screen import BROWSER

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
    assert advice.study is not None
    assert len(advice.study.trials) >= 3 * len(advice.results)


def page_data(advice: Advice) -> dict[str, Any]:
    """What the script of an advice's page chooses from."""
    assert advice.page is not None
    found = re.search('id="data">(.*?)</script>', advice.page.read_text(encoding="utf-8"))
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_page_has_the_layer_first_and_the_known_kinds_after_it(first: tuple[Advice, Any]) -> None:
    advice, _ = first
    assert advice.page is not None
    text = advice.page.read_text(encoding="utf-8")
    own, *known = page_data(advice)["kinds"]
    assert (own["name"], own["label"], [one["depth"] for one in own["depths"]]) == ("advice", "dense, this advice", [2])
    assert {one["name"] for one in own["depths"][0]["rows"]} == {"pre-norm", "plain"}
    assert [one["name"] for one in known[:2]] == ["mlp", "convolution"]
    shown, folded = text.partition("<details")[::2]
    assert advice.headline in shown
    assert 'id="say" aria-live="polite">Not known: no connection trains.' in shown  # three steps
    assert all(f'<table id="{name}">' in folded for name in ("words", "finalists", "connections"))
    assert "last map ÷ √L" in folded


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
    assert kind.protocol.startswith("equal params, plain's width 8, 3 steps, batches of 16, sgd, each connection")
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


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_the_page_of_an_advice_in_a_browser(first: tuple[Advice, Any], tmp_path: Path) -> None:
    with Store(first[0].store, read_only=True) as store:
        advice = write_page(learnt(first[0]), tmp_path, store)
    assert advice.page is not None
    assert advice.notes[0].startswith("By held-out loss: Take ")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    command = [str(BROWSER), *options, f"{advice.page.as_uri()}#advice/2/loss"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "CONSOLE" not in done.stderr
    assert re.search(r'value="advice"[^>]*><span>dense, this advice', done.stdout)
    (one,) = page_data(advice)["kinds"][0]["depths"]
    assert f">{one['by']['loss']['say']}</p>" in done.stdout
    assert one["by"]["loss"]["say"].startswith(f"Take {advice.use[0].block} ")
    assert done.stdout.count('class="row learns"') == len({one.block for one in advice.finalists})


def test_the_command_prints_the_answer_first(run: Run, first: tuple[Advice, Any], monkeypatch: Any) -> None:
    """The command and the function are the same request, so nothing is measured."""
    advice, _ = first

    def inline(layer: str, **words: Any) -> Advice:
        assert words.pop("progress")
        again, engine = run(
            layer, **{name: value for name, value in words.items() if name not in ("engine", "workers")}
        )
        assert engine.cells == []
        return again

    monkeypatch.setattr("highway_bench.advice.run.advise", inline)
    sizes = ["--depth", "2", "--minutes", "2", "--width", "8", "--batch-size", "16", "--data", "digits"]
    words = ["advise", "dense", *sizes, "--block", "plain", "--out", str(advice.store.parents[1])]
    lines = CliRunner().invoke(app, words).stdout.splitlines()
    assert lines[:4] == advice.lines()
    assert lines[-1] == f"page: {advice.page}"
    printed = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert printed == {"schema": JSON_SCHEMA, **advice.plain()}


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
    assert advice.notes[-1] == "1 measurement failed, the first: timeout: after 1 s."


@pytest.mark.parametrize("at_1", [None, 50.0], ids=["diverged", "behind"])
def test_the_better_of_two_rates_counts_for_a_finalist(
    at_1: float | None, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The higher its rate, the lower the loss of plain; but at 1 every run of the finals has the loss ``at_1``."""
    value = MeasuredCells.value

    def unstable(self: MeasuredCells, cell: Cell, metric: str) -> float | None:
        if cell.block != "plain" or metric != "final_loss":
            return value(self, cell, metric)
        rate = cell.recipe["rate"]
        return at_1 if rate == 1 and cell.seed >= FINAL_SEEDS else 1 / rate

    monkeypatch.setattr(MeasuredCells, "value", unstable)
    advice, _ = run(out=tmp_path)
    plain = next(
        one for one in advice.results if one.connection.block == "plain" and one.connection in advice.finalists
    )
    assert (plain.rate, plain.loss) == (0.3, pytest.approx(1 / 0.3))
    seeds = advice.quality.seeds
    worse = f"diverged at {seeds} of {seeds} seeds" if at_1 is None else "had a higher loss"
    assert (
        f"{plain.connection} is judged with the learning rate 0.3: with 1, the better one in the last rung, it {worse}."
    ) in advice.notes
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
        from highway_bench.advice.budget import HalvingPlan

        return HalvingPlan(2, 2, 1)

    monkeypatch.setattr("highway_bench.advice.work.halving_plan", least)
    advice, _ = run(out=tmp_path)
    left = [one for one in advice.results if one.learning == Learning.LEFT_OUT]
    assert [one.reason for one in left] == ["no time: 2 connections fit 2 minutes"] * len(left)
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
        busy.setattr("highway_bench.advice.work.halving_plan", refuse)
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


@pytest.mark.parametrize("name", ["refused", pytest.param("feed-forward", marks=pytest.mark.slow)])
def test_the_advices_of_the_document(name: str, run: Run, examples: str) -> None:
    """Each of them, tiny, as it is written into the document."""

    def make(layer: str, depth: int, command: list[str]) -> Advice:
        return run(layer, block=("pre-norm",), command=command)[0]

    example = next(one for one in advice_docs.EXAMPLES if one.name == name)
    lines = advice_docs.advice_lines(example, make)
    if name == "refused":
        assert "casts: an input of float32 becomes bfloat16" in lines[0]
        return
    assert lines[0].startswith(("> Take pre-norm", "> No connection", "> Undecided", "> pre-norm", "> Only"))
    assert sum(line.startswith("| pre-norm (") for line in lines) == 2
    assert lines[-1].startswith("Trained on ")
    assert " torch " in lines[-1]
    text = advice_docs.with_part(advice_docs.DOCUMENT.read_text(encoding="utf-8"), name, lines)
    assert f"    {' '.join(example.words)}\n\n<!-- measured: {name} -->\n\n{lines[0]}\n" in text
    assert text.count("<!-- end -->") == len(advice_docs.EXAMPLES)


def test_an_advice_of_the_document_that_is_refused_or_failed_is_not_written(run: Run) -> None:
    def make(status: int) -> Any:
        return SimpleNamespace(exit_status=status, notes=["3 of 9 measurements failed"])

    def refuse(*_: object, **__: object) -> Any:
        raise BadInput("10 minutes are too few")

    example = advice_docs.EXAMPLES[0]
    with pytest.raises(BadInput, match="10 minutes are too few"):
        advice_docs.advice_lines(example, refuse)
    with pytest.raises(SystemExit, match=f"{example.name}: 3 of 9 measurements failed"):
        advice_docs.advice_lines(example, lambda *_, **__: make(1))
    refused = advice_docs.EXAMPLES[-1]
    with pytest.raises(SystemExit, match="should be refused"):
        advice_docs.advice_lines(refused, lambda *_, **__: make(0))
    with pytest.raises(BadInput, match="10 minutes are too few"):
        advice_docs.advice_lines(refused, refuse)


def test_a_part_that_the_document_lacks_is_named() -> None:
    with pytest.raises(SystemExit, match="has no part 'other'"):
        advice_docs.with_part(advice_docs.DOCUMENT.read_text(encoding="utf-8"), "other", [])


def test_a_depth_that_does_not_fit_is_refused_first(run: Run, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="depth 1,000,000,000 does not fit memory"):
        run(depth=1_000_000_000, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()

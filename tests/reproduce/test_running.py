"""Running a reproduction: its findings, files and store, and the requests that are refused before anything runs."""

from __future__ import annotations

import json
from dataclasses import fields

import pandas as pd
import psutil
import pytest
import torch
from matplotlib.figure import Figure
from typer.testing import CliRunner

from highway_bench.cell import Cell
from highway_bench.cli import app
from highway_bench.errors import BadInput
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.studies.reproduce import running
from highway_bench.studies.reproduce.arms import trained
from highway_bench.studies.reproduce.base import Evaluated, NotAttempted, Reproduction, reproductions
from highway_bench.studies.reproduce.claims import Claim, Observation
from highway_bench.studies.reproduce.quantities import Quantity, Region, Statistic
from highway_bench.studies.reproduce.request import Request


class Tiny(Reproduction):
    """Two networks on the digits."""

    name, title, source = "test-tiny", "Tiny nets", "nowhere | §1"
    takes, scales, least_seeds = frozenset({"seeds", "steps"}), ("desk", "paper"), 2
    not_attempted = (NotAttempted("a larger one", "nowhere", "it is larger"),)

    def cells(self, request: Request) -> list[Cell]:
        recipe = {"optimiser": "adam", "rate": 0.01, "steps": request.steps or 3, "threshold": 0.1}
        words = {"depth": 2, "nominal_width": 200_000 if request.scale == "paper" else 16, "batch_size": 32}
        words |= {"dataset": "digits", "recipe": recipe, "device": request.device}
        return [trained("highway", "dense", seed=seed, **words) for seed in range(request.seeds or 2)]

    def claims(self, request: Request) -> list[Claim]:
        return [
            Claim(
                statement="a loss",
                source=self.source,
                quantity="losses",
                statistic=Statistic.EXACT,
                region=Region(least=1),
                observe=lambda losses, _: Observation(decisive=[Quantity.exact("losses", len(losses))]),
            )
        ]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        losses = rows.loc[rows["metric"] == "final_loss", "value"]
        table = column.shown("losses", "Losses", pd.DataFrame({"loss": losses}), [column.number("loss", "loss")])
        figure = Figure()
        figure.subplots().plot(losses.to_numpy())
        picture = Picture("curve", "A curve", "alt", "caption", figure)
        return losses, [table], [picture]


@pytest.fixture
def tiny():
    one = Tiny()
    reproductions.register(one.name, one, module=__name__)
    yield one
    reproductions.unregister(one.name)


@pytest.fixture
def call(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["reproduce", *map(str, words)], prog_name="highway-bench")


def test_the_budget_counts_the_trials_of_searches_apart_from_tuning_runs():
    cells = reproductions.get("flops").cells(Request())[:1]
    tuning = [cells[0].but(trial=trial, recipe={"rate": 0.1, "own_rate": True}) for trial in (0, 1)]
    assert "2 tuning runs" in running.budget([*cells, *tuning])
    assert "1 trial" in running.budget([*cells, cells[0].but(trial=0)])


@pytest.mark.slow
def test_the_command_writes_files_and_uses_the_store_again(call, tmp_path, monkeypatch):
    first = call("test-tiny", "--device", "cpu")
    assert first.exit_code == 0, first.output
    folder = tmp_path / "reports/reproduce/test-tiny"
    assert {path.name for path in folder.iterdir()} == {"findings.md", "curve.svg", "rows.csv"}
    page = (folder / "findings.md").read_text()
    assert all(text in page for text in ("losses: 2 | reproduced |", "(curve.svg)", "- commit: "))
    # Stored cells take no memory
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 1})())
    again = call("test-tiny", "--device", "cpu", "--json")
    output = json.loads(again.stdout)
    assert [one["verdict"] for one in output["findings"]] == ["reproduced"]
    assert "of which 2" in call("test-tiny", "--device", "cpu", "--dry-run").output


def test_a_run_of_another_size_has_a_folder_of_its_own(tiny, tmp_path):
    def name(**options):
        return running.folder_for(tiny, Request(**options), tmp_path).name

    assert name() == "test-tiny"
    assert name(seeds=1, depth=(10, 20)) == "test-tiny-seeds-1-depth-10-20"
    assert name(scale="paper", steps=5) == "test-tiny-paper-steps-5"
    assert name(scale="desk", device="cpu") == "test-tiny"
    for option in {one.name for one in fields(Request)} - {"scale", "device"}:
        assert name(**{option: (2,) if option == "depth" else 2}) == f"test-tiny-{option}-2"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_request_without_options_is_the_commands_default(tiny, monkeypatch, device):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    request = Request()
    assert request == running.request_for("test-tiny", {"scale": None, "device": None, "depth": ()})
    assert (tiny.scale_of(request), request.device) == ("desk", device)
    assert tiny.scale_of(Request(scale="paper")) == "paper"


def test_a_folder_that_cannot_be_created_is_refused_before_anything_is_measured(call, tmp_path):
    (tmp_path / "file").write_text("")
    refused = call("test-tiny", "--device", "cpu", "--out", tmp_path / "file")
    assert refused.exit_code == 2
    assert ": Not a directory" in refused.output
    assert not (tmp_path / "reports/reproduce.sqlite").exists()


def test_missing_data_are_reported_with_the_cost(monkeypatch, tmp_path):
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    dry = CliRunner().invoke(
        app, ["reproduce", "lecture", "--device", "cpu", "--dry-run", "--store", str(tmp_path / "none.sqlite")]
    )
    assert dry.exit_code == 0
    assert "mnist: no folder" in dry.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--dry-run", "--seeds", "2"], "--dry-run, --seeds"),
        (["test-tini"], "did you mean test-tiny"),
        (["test-tiny", "--epochs", "3"], "it takes seeds, steps"),
        (["test-tiny", "--steps", "0"], "steps"),
        (["test-tiny", "--scale", "pape"], "mean paper?"),
        (["test-tiny", "--device", "tpu"], "'tpu'"),
        pytest.param(
            ["flops", "--device", "cuda", "--dry-run"],
            "CUDA",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device"),
        ),
    ],
)
def test_bad_input_is_one_line(call, words, says):
    refused = call(*words)
    assert refused.exit_code == 2
    assert says in refused.output
    assert len(refused.output.strip().splitlines()) == 1


def test_a_scale_that_does_not_fit_is_refused_with_the_number(tiny, monkeypatch, tmp_path):
    request = running.request_for("test-tiny", {"scale": "paper", "device": "cpu"})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 2**30})())
    with pytest.raises(BadInput, match=r"scale paper.* [\d,.]+ GiB"):
        running.cost("test-tiny", request, store=None)
    with pytest.raises(BadInput, match="GiB"):
        running.reproduce("test-tiny", request, store=tmp_path / "store.sqlite", out=tmp_path / "out")
    assert not any(tmp_path.iterdir())

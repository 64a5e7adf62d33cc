"""``run``: measured, resumed, strict; then ``report`` and ``results`` on what it left."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.cli.run import print_plan
from highway_bench.results import Store

RUN = (
    "run",
    "memory",
    "--profile",
    "smoke",
    "--family",
    "dense",
    "--block",
    "plain",
    "--block",
    "highway",
    "--workers",
    "1",
    "--store",
    "results/store.sqlite",
)


def test_dry_run(here: Path, invoke: Any) -> None:
    shown = invoke("run", "--profile", "smoke", "--family", "dense", "--block", "plain", "--dry-run")
    assert shown.exit_code == 0
    rows = [[part.strip() for part in line.split("│")] for line in shown.stdout.splitlines() if "│" in line]
    assert ["trainability", "dense", "mnist-5k", "4"] in rows
    cells = sum(int(row[-1]) for row in rows)
    assert f"{cells} cells, 0 of them in reports/results.sqlite already" in shown.stdout
    assert "MiB" in shown.stdout
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_gpus_time_is_said_to_be_a_guess(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    cell = Cell(task="cost", block="plain", family="dense", depth=2, width=8, nominal_width=8, device=device)
    estimate: Any = SimpleNamespace(cells=(cell,), stored=0, seconds=60.0, bytes=2**20)
    print_plan(estimate, Path("store.sqlite"), as_json=False)
    assert ("(on a GPU, a guess from closed forms)" in capsys.readouterr().out) == (device == "cuda")


def test_dry_run_as_json(invoke: Any) -> None:
    plan = json.loads(invoke(*RUN, "--dry-run", "--json").stdout)
    assert {cell["block"] for cell in plan["cells"]} == {"plain", "highway"}
    assert plan["seconds"] > 0
    assert plan["bytes"] > 0
    assert plan["stored"] == 0


def test_run_then_all_that_follows(here: Path, invoke: Any) -> None:
    first = invoke(*RUN)
    assert first.exit_code == 0, first.output
    assert "2 cells: 2 ok; 2 measured in" in first.stdout
    assert "store: results/store.sqlite" in first.stdout
    assert "highway-bench report --store results/store.sqlite" in first.stdout
    assert "2/2 cells" in first.stderr  # progress, as plain lines where there is no terminal

    again = invoke(*RUN)
    assert again.exit_code == 0
    assert "all 2 cells are in the store already: 2 ok" in again.stdout
    assert "2 of them in results/store.sqlite already" in invoke(*RUN, "--dry-run").stdout

    assert "last run" not in again.stderr
    other = invoke(*RUN, "--block-option", "gate_bias=-2", "--dry-run")
    assert "new since the last run: gate_bias -2" in other.stderr

    with Store("results/store.sqlite", read_only=True) as store:
        assert next(iter(store.runs().values()))["command"][0] == "highway-bench"

    printed = json.loads(invoke(*RUN, "--rerun", "all", "--json").stdout)
    assert (printed["measured"], printed["stored"], printed["counts"], printed["failures"]) == (2, 0, {"ok": 2}, [])

    page = invoke("report", "--store", "results/store.sqlite", "--out", "page")
    assert page.stdout == "page/index.html\n"
    assert (here / "page/index.html").is_file()

    shown = invoke("results", "show", "--store", "results/store.sqlite", "--block", "highway")
    assert shown.exit_code == 0
    assert "highway-bench" in shown.stdout
    shown = json.loads(
        invoke("results", "show", "--store", "results/store.sqlite", "--metric", "peak", "--json").stdout
    )
    assert {row["block"] for row in shown["rows"]} == {"plain", "highway"}
    assert invoke("results", "show", "--store", "results/store.sqlite", "--task", "nothing").exit_code == 3

    exported = invoke("results", "export", "rows.csv", "--store", "results/store.sqlite")
    assert exported.exit_code == 0
    assert len((here / "rows.csv").read_text().splitlines()) > 10
    merged = invoke("results", "merge", "all.sqlite", "results/store.sqlite").stdout.splitlines()
    assert merged == [
        "results/store.sqlite: 2 cells added, 0 newer than in all.sqlite, 0 the same, 0 older and left out",
        "2 cells taken: all.sqlite",
    ]


def test_nothing_to_show(here: Path, invoke: Any) -> None:
    """A report or an export of nothing must not pass for a success."""
    Store("empty.sqlite").close()
    for words in [("report",), ("results", "show"), ("results", "export", "rows.csv")]:
        done = invoke(*words, "--store", "empty.sqlite")
        assert done.exit_code == 3
        assert done.stderr.startswith("highway-bench: ")


def test_nothing_planned(invoke: Any) -> None:
    done = invoke("run", "trainability", "--profile", "smoke", "--family", "dense-pair")
    assert done.exit_code == 3
    assert done.stderr == "highway-bench: profile 'smoke' has no cell for this selection\n"


def test_all_skipped_and_strict(invoke: Any) -> None:
    """A run whose every cell was skipped measured nothing; under --strict each is named."""
    skipping = (*RUN, "--mode", "cudagraph")
    assert invoke(*skipping).exit_code == 3
    strict = invoke(*skipping, "--strict")
    assert strict.exit_code == 1
    assert (
        "unexpected: memory plain dense depth 2 width 32 train-step cudagraph: skipped (a replayed CUDA graph"
        in strict.stderr
    )
    assert strict.stderr.splitlines()[-1] == (
        "highway-bench: 2 cells ended with a status that profile 'smoke' does not expect"
    )


FAILING = """
from torch import nn

class FailsInTraining(nn.Linear):
    # it fails later than what is tried before a run

    def __init__(self, width):
        super().__init__(width, width)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if len(x) == 100 and self.calls > 4:
            raise RuntimeError("no fifth batch of a hundred")
        return super().forward(x)
"""


def test_failed_cell(invoke: Any, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "failing_layers.py").write_text(FAILING)
    monkeypatch.syspath_prepend(str(here))
    done = invoke(
        "run",
        "trainability",
        "--profile",
        "smoke",
        "--family",
        "failing_layers:FailsInTraining",
        "--block",
        "plain",
        "--recipe",
        "rate=0.1",
        "--seed",
        "0",
        "--batch-size",
        "100",
        "--workers",
        "1",
        "--store",
        "store.sqlite",
    )
    assert done.exit_code == 1
    assert "failed: trainability plain failing_layers:FailsInTraining" in done.stdout
    assert "no fifth batch of a hundred" in done.stdout


def test_status_of_odd_values(store: None, invoke: Any) -> None:
    """A progress with one more entry, and a failed row without a recipe."""
    with closing(sqlite3.connect("reports/results.sqlite")) as db:
        db.execute("UPDATE meta SET value = json_set(value, '$.more', 1) WHERE name = 'progress'")
        db.execute("UPDATE rows SET status = 'failed', recipe = NULL, message = 'why' WHERE block = 'highway'")
        db.commit()
    done = invoke("status")
    assert (done.exit_code, invoke("results", "check").exit_code) == (0, 0), done.exception
    assert "failed: task memory block highway family dense depth 2 width" in done.stdout
    assert "more" not in done.stdout


@pytest.mark.parametrize("error", [KeyboardInterrupt])
def test_interrupt_says_where_results_are(
    error: type[BaseException], invoke: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("highway_bench.plan.plan.Plan.run", interrupted)
    done = invoke(*RUN)
    assert done.exit_code == 130
    assert done.stderr == (
        "highway-bench: interrupted; finished measurements are in results/store.sqlite, and the same command resumes\n"
    )

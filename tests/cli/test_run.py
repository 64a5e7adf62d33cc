"""``run``: measured, resumed, strict; then ``report`` and ``results`` on what it left."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from highway_bench.blocks import blocks
from highway_bench.cli.run import print_plan
from highway_bench.results import Store
from tests.inline_engine import cell_of

RUN = "run memory --profile smoke --family dense --block plain --block highway --store results/store.sqlite"
MEASURE = f"{RUN} --engine inline"
RAISING = """
from highway_bench.blocks import Block, register_block

@register_block("raising", equation="y = x", source="", summary="")
class Raising(Block):
    def __init__(self, site):
        super().__init__()
        self.transform = site.family.transform(site)

    def forward(self, x):
        raise RuntimeError("no forward pass")
"""


def test_dry_run(here, invoke):
    shown = invoke("run --profile smoke --family dense --block plain --dry-run")
    assert shown.exit_code == 0
    rows = [[part.strip() for part in line.split("│")] for line in shown.stdout.splitlines() if "│" in line]
    assert ["trainability", "dense", "mnist-5k", "4"] in rows
    cells = sum(int(row[-1]) for row in rows)
    assert f"{cells} cells, 0" in shown.stdout
    assert "MiB" in shown.stdout
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_gpus_time_is_said_to_be_a_guess(device, capsys):
    estimate = SimpleNamespace(cells=(cell_of("cost", device=device),), stored=0, seconds=60.0, bytes=2**20)
    print_plan(estimate, Path("store.sqlite"), as_json=False)
    assert ("a guess" in capsys.readouterr().out) == (device == "cuda")


def test_dry_run_as_json(invoke):
    plan = json.loads(invoke(RUN, "--dry-run --json").stdout)
    assert {cell["block"] for cell in plan["cells"]} == {"plain", "highway"}
    assert plan["seconds"] > 0
    assert plan["bytes"] > 0
    assert plan["stored"] == 0


@pytest.mark.usefixtures("inline")
def test_run_then_all_that_follows(here, invoke):
    first = invoke(MEASURE)
    assert first.exit_code == 0, first.output
    assert "2 measured" in first.stdout
    assert "report --store results/store.sqlite" in first.stdout
    assert "2/2 cells" in first.stderr  # progress, as plain lines where there is no terminal

    again = invoke(MEASURE)
    assert again.exit_code == 0
    assert "all 2 cells" in again.stdout
    assert "last run" not in again.stderr
    other = invoke(RUN, "--block-option gate_bias=-2 --dry-run")
    assert "gate_bias -2" in other.stderr

    with Store("results/store.sqlite", read_only=True) as store:
        assert next(iter(store.runs().values()))["command"][0] == "highway-bench"

    printed = json.loads(invoke(MEASURE, "--rerun all --json").stdout)
    assert (printed["measured"], printed["stored"], printed["counts"], printed["failures"]) == (2, 0, {"ok": 2}, [])

    page = invoke("report --store results/store.sqlite --out page")
    assert page.stdout == "page/index.html\n"
    assert (here / "page/index.html").is_file()

    shown = invoke("results show --store results/store.sqlite --block highway")
    assert (shown.exit_code, "highway-bench" in shown.stdout) == (0, True)
    taken = invoke("results import results/store.sqlite --store all.sqlite").stdout.splitlines()
    assert taken[-1] == "2 cells taken: all.sqlite"


def test_rows_are_filtered_and_exported(here, invoke, store):
    shown = json.loads(invoke("results show --metric peak --json").stdout)
    assert {row["block"] for row in shown["rows"]} == {"plain", "highway"}
    assert invoke("results show --task nothing").exit_code == 3
    assert invoke("results export rows.csv").exit_code == 0
    assert len((here / "rows.csv").read_text().splitlines()) > 10
    assert invoke("results export docs/data").exit_code == 0
    (here / "other").mkdir()
    with Store("reports/results.sqlite"):  # a run is still going
        assert invoke("results export other").exit_code == 2
    assert not list((here / "other").iterdir())


def test_nothing_to_show(here, invoke):
    """A report or an export of nothing must not pass for a success."""
    Store("empty.sqlite").close()
    for words in ["report", "results show", "results export rows.csv"]:
        done = invoke(words, "--store empty.sqlite")
        assert done.exit_code == 3
        assert done.stderr.startswith("highway-bench: ")


def test_nothing_planned(invoke):
    done = invoke("run trainability --profile smoke --family dense-pair")
    assert done.exit_code == 3
    assert "'smoke'" in done.stderr


@pytest.mark.usefixtures("inline")
def test_all_skipped_and_strict(invoke):
    """A run whose every cell was skipped measured nothing; under --strict each is named."""
    assert invoke(MEASURE, "--mode cudagraph").exit_code == 3
    strict = invoke(MEASURE, "--mode cudagraph --strict")
    assert strict.exit_code == 1
    *named, last = strict.stderr.splitlines()[-3:]
    assert [line.startswith("unexpected: memory ") and ": skipped (" in line for line in named] == [True] * 2
    assert "2 cells" in last


@pytest.mark.usefixtures("inline")
def test_failed_cell(invoke, here):
    (here / "raising_block.py").write_text(RAISING)
    done = invoke(MEASURE, "--block raising --plugin raising_block.py")
    blocks.unregister("raising")
    sys.modules.pop("raising_block")
    assert done.exit_code == 1, done.output
    assert "memory raising dense" in done.stdout
    assert "no forward pass" in done.stdout
    assert "2 ok, 1 failed" in done.stdout


def test_status_of_odd_values(store, invoke):
    """A progress with one more entry, and a failed row without a recipe."""
    with closing(sqlite3.connect("reports/results.sqlite")) as db:
        db.execute("UPDATE meta SET value = json_set(value, '$.more', 1) WHERE name = 'progress'")
        db.execute("UPDATE rows SET status = 'failed', recipe = NULL, message = 'why' WHERE block = 'highway'")
        db.commit()
    done = invoke("status")
    assert (done.exit_code, invoke("results check").exit_code) == (0, 0), done.exception
    assert "failed: task memory block highway" in done.stdout
    assert "more" not in done.stdout


def test_interrupt_says_where_results_are(invoke, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("highway_bench.plan.plan.Plan.run", interrupted)
    done = invoke(RUN)
    assert (done.exit_code, done.stderr.count("\n")) == (130, 1)
    assert "results/store.sqlite" in done.stderr

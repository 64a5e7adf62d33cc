"""The pages of docs/results: written from rows, with what is missing named, and checked against the rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from docs.pages.__main__ import PAGES, ROOT, Site, differences, main, others
from docs.pages.claims import NOT_ALL, claim_lines, tally
from docs.pages.committed import Committed, Study, command_of, profile_of, request_of
from docs.pages.history import MachineHistory
from docs.pages.tables import without_lone_blocks
from highway_bench.asv_suite.series import Suite
from highway_bench.cell import Cell
from highway_bench.history.files import Result, write_text
from highway_bench.reproduce._printed_log import REACHED
from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.claims import Verdict
from highway_bench.reproduce.request import Request
from highway_bench.results import LATER_ATTEMPT, Store, export_runs, import_rows, row
from tests.reproduce.conftest import followed

ABSENT = "**Not measured.**"
FRONTIER = ["/a/path/highway-bench", "run", "--profile", "frontier", "--store", "/a/path/x.sqlite"]
THOUSAND = ["highway-bench", "reproduce", "thousand", "--seeds", "3"]
LOSSES = {("plain", 10): 0.09, ("plain", 50): 1.9, ("highway", 10): 0.041, ("highway", 50): 0.0567}


def metrics(cell: Cell, loss: float, seed: int) -> dict[str, float]:
    """What a training stores, with a little scatter over seeds."""
    success = float(loss < 0.23)
    accuracy = 0.95 - loss / 10 + (0.02 if cell.block == "plain" else 0.0)
    return {"final_loss": loss * (1 + 0.01 * seed), "success": success, "rate": 0.1, "test_accuracy": accuracy}


def put(store: Store, run: str, command: list[str], values: Mapping[Cell, Mapping[str, float]]) -> None:
    """Store the metrics of cells as those of one run."""
    for number, (cell, metric) in enumerate(values.items()):
        common: dict[str, Any] = {"run_id": run, "time_utc": "2026-01-02T03:04:05+00:00", "machine": "a-cpu"}
        common |= {"commit": "abc1234", "torch": "2.13.0", "digest": f"{run}-{number}", "status": "ok"}
        store.put(f"{run}-{number}", [row(**cell.columns(), **common, metric=name, value=value, unit="1")
                                      for name, value in metric.items()])  # fmt: skip
    times = {"started": "2026-01-02T03:00:00+00:00", "finished": "2026-01-02T04:30:00+00:00"}
    store.add_run(run, {"command": command, "machines": {"cpu": "a-cpu"}, "measured": len(values), **times})


def ladder() -> Iterable[tuple[Cell, dict[str, float]]]:
    for (block, depth), loss in LOSSES.items():
        for seed in range(10):
            recipe = {"steps": 300, "optimiser": "sgd", "rate": "tuned", "rates": [0.1], "threshold": 0.1}
            cell = Cell(task="trainability", block=block, family="dense", depth=depth, width=9, nominal_width=9,
                        dataset="mnist-5k", recipe=recipe, seed=seed)  # fmt: skip
            yield cell, metrics(cell, loss, seed)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of exported rows: a small ladder, and a reproduction of three seeds."""
    folder = tmp_path_factory.mktemp("data")
    runs = followed(
        reproductions.get("thousand"),
        Request(device="cpu", seeds=3),
        lambda cell: metrics(cell, 0.1 if cell.block == "highway" else 2.3, cell.seed),
    )
    with Store(folder / "store.sqlite") as store:
        put(store, "run-1", FRONTIER, dict(ladder()))
        put(store, "run-2", THOUSAND, runs)
        export_runs(store, folder / "rows")
    return folder / "rows"


@pytest.fixture(scope="module")
def written(data: Path) -> dict[str, str]:
    """The pages and figures of these rows."""
    return Site(data, data / "points").write()


@pytest.fixture
def pages(written: dict[str, str], tmp_path: Path) -> Path:
    """A folder with them."""
    for name, text in written.items():
        write_text(tmp_path / name, text)
    return tmp_path


def test_a_page_has_the_numbers_of_its_rows(pages: Path) -> None:
    depth = (pages / "depth.md").read_text(encoding="utf-8")
    assert ABSENT not in depth
    assert "0.0592" in depth
    assert "| `highway-bench run --profile frontier` | abc1234 | a-cpu |" in depth
    assert "/a/path" not in depth
    claims = (pages / "literature.md").read_text(encoding="utf-8")
    lines = [line.split(" | ")[1] for line in claims.splitlines() if "](#" in line and " | " in line]
    assert lines[0] == "reproduced"
    assert set(lines[1:]) == {"not measured"}  # last


def test_claims_whose_runs_did_not_end_or_need_more_are_no_verdicts(data: Path) -> None:
    (whole,) = [one for one in Site(data, data).repetitions if one.reproduction.name == "thousand"]
    assert whole.conclusion is not None
    part = replace(whole, conclusion=replace(whole.conclusion, incomplete="42 of 84 runs did not end"))
    (line,) = claim_lines([part])
    assert (line.group, line.key) == (NOT_ALL, "42 of 84 runs did not end")
    ended, unended = tally([whole]), tally([part])
    assert (ended.verdicts, ended.incomplete) == ({"reproduced": 1}, 0)
    assert (unended.verdicts, unended.incomplete, unended.not_measured, unended.exact) == ({}, 1, 0, 0)
    findings = [replace(one, claim=replace(one.claim, needs="more epochs")) for one in whole.findings]
    lacking = replace(whole, findings=findings)
    assert (tally([lacking]).verdicts, tally([lacking]).not_measured) == ({}, 1)
    assert next(claim_lines([lacking])).key == "0 runs: needs more epochs"


def test_the_losses_that_keras_reaches_are_those_that_its_rows_reproduce() -> None:
    """``REACHED`` is written by hand, because a reproduction reads no rows but its own."""
    (keras,) = Committed.of(ROOT / "docs/data").repetitions(["lecture-keras"])
    names = {"training loss": "epoch_train_loss", "test loss": "epoch_test_loss"}
    reproduced = [one.claim.statement for one in keras.findings if one.verdict == Verdict.REPRODUCED]
    found = {re.search(r"(training loss|test loss) of epoch (\d+)", statement) for statement in reproduced}
    assert {(names[one[1]], int(one[2])) for one in found if one} == REACHED


@pytest.mark.parametrize("later", [("skipped",), ("failed",), ("ok", "failed")])
def test_a_later_attempt_that_measured_less_replaces_none(later: tuple[str, ...], tmp_path: Path) -> None:
    for run, day, statuses in (("first", 2, ("ok",)), ("later", 3, later)):
        with Store(tmp_path / f"{run}.sqlite") as store:
            about = {"run_id": run, "time_utc": f"2026-01-0{day}T00:00:00+00:00", "digest": "one", "task": "cost"}
            rows = [row(**about, status=status, metric=f"metric {n}") for n, status in enumerate(statuses)]
            store.put("one", rows)
            store.add_run(run, {})
            export_runs(store, tmp_path / "data")
    assert set(Committed.of(tmp_path / "data").rows["run_id"]) == {"first"}


RESULT, PART, FAILURE, SKIP = ("ok", "ok"), ("ok", "failed"), ("failed", "failed"), ("skipped", "skipped")


@pytest.mark.parametrize(
    "attempts",
    [(FAILURE, SKIP), (SKIP, FAILURE), (PART, FAILURE), (RESULT, PART), (RESULT, ("ok", "skipped"))],
    ids=str,
)
def test_the_attempt_that_counts_is_that_of_a_store(attempts: tuple[tuple[str, ...], ...], tmp_path: Path) -> None:
    for day, statuses in enumerate(attempts, 1):
        with Store(tmp_path / f"{day}.sqlite") as store:
            about = {"run_id": f"run {day}", "time_utc": f"2026-01-0{day}T00:00:00+00:00", "digest": "a"}
            store.put("a", [row(**about, status=status, metric=f"metric {n}") for n, status in enumerate(statuses)])
            store.add_run(f"run {day}", {})
            export_runs(store, tmp_path / "data")
    import_rows(tmp_path / "all.sqlite", tmp_path / "data")
    with Store(tmp_path / "all.sqlite") as store:
        stored = {one["run_id"] for one in store.rows() if one["axis"] != LATER_ATTEMPT}
    assert set(Committed.of(tmp_path / "data").rows["run_id"]) == stored


def test_figures_are_small(pages: Path) -> None:
    drawn = [*pages.rglob("*.svg"), *(ROOT / "docs/results").rglob("*.svg")]
    assert {path.name: path.stat().st_size for path in drawn if path.stat().st_size > 120_000} == {}


def test_contests_of_one_block_are_no_contests() -> None:
    rows = [
        row(**cell.columns(), metric=name, value=value, machine="m", digest=cell.key, status="ok")
        for cell, metric in ladder()
        for name, value in metric.items()
        if cell.depth == 10 or cell.block == "highway"
    ]
    study = Study("one", "", pd.DataFrame(rows), {})
    for own in rows:
        own["nominal_width"] = own["depth"]  # another contest for each depth
    lone = without_lone_blocks(Study("one", "", pd.DataFrame(rows), {}))
    assert set(without_lone_blocks(study).rows["depth"]) == {10, 50}
    assert set(lone.rows["depth"]) == {10}


def test_what_lacks_rows_is_named_with_its_command(pages: Path) -> None:
    texts = {page: (pages / f"{page}.md").read_text(encoding="utf-8") for page in PAGES}
    assert {page for page, text in texts.items() if ABSENT in text} == set(PAGES) - {"depth"}
    assert "highway-bench run throughput memory cost --store" in texts["cost"]
    assert "    highway-bench reproduce figure1\n" in texts["literature"]
    assert "    highway-bench reproduce thousand --seeds 3\n" in texts["literature"]


def test_a_changed_number_is_noticed(written: dict[str, str], pages: Path) -> None:
    assert differences(written, pages) == []
    page, (figure, *_) = pages / "depth.md", sorted(pages.glob("images/depth-loss*.svg"))
    page.write_text(page.read_text(encoding="utf-8").replace("0.0592", "0.0593", 1), encoding="utf-8")
    figure.write_text(figure.read_text(encoding="utf-8").replace("0.0592 nat", "0.05 nat"), encoding="utf-8")
    lines = "\n".join(differences(written, pages))
    assert "depth.md: -" in lines
    assert f"images/{figure.name}: -" in lines
    assert others(written, pages) == []
    (pages / "old.md").touch()
    assert others(written, pages) == [pages / "old.md"]


def test_the_check_of_pages(data: Path, pages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--check", "--points", str(data / "points"), "--out", str(pages), "--data"]
    assert main([*arguments, str(data)]) == 0
    (pages / "broken.parquet").write_text("no", encoding="utf-8")
    assert main([*arguments, str(pages)]) == 2
    assert capsys.readouterr().err.startswith("error: cannot read")


@pytest.mark.parametrize(
    ("name", "lines", "row"),
    [
        (
            "gate",
            [{"kind": "same", "load": "idle", "boot": "1", "values": {"plain dense 10": [1.0, 0.1]}}] * 30,
            "| idle | ",
        ),
        (
            "advice",
            [
                {
                    "kind": "known",
                    "rules": 2,
                    "family": "conv",
                    "best": ["plain", "published"],
                    "use": [],
                    "verdict": "undecided",
                }
                | {"minutes": 5, "commit": "0123456789", "machine": "cpu"}
            ],
            "| the best is known | 2 | conv | 1 | 0 [0 %, 79 %] | – | 0 | 0 | 1 | 5 | 01234567 on cpu |",
        ),
    ],
)
def test_a_proof_is_a_table(tmp_path: Path, name: str, lines: list[dict[str, Any]], row: str) -> None:
    assert Site(tmp_path, tmp_path).proof(name) == ""
    (tmp_path / f"{name}-proof.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    table = Site(tmp_path, tmp_path).proof(name).strip().splitlines()
    assert table[1].startswith("| --- | --- |")
    assert table[1].count("|") == table[0].count("|")
    assert table[2].startswith(row)


def test_a_commit_that_was_measured_with_two_versions_counts_once() -> None:
    results = []
    for commit, torch in (("first", "2.13"), ("last", "2.13"), ("first", "2.14"), ("last", "2.14")):
        ratios = {"blocks.Depths.track_ratio": [[1.5], [["'plain'"], ["10"]], "1"]}
        data = {"date": 0, "params": {"machine": "m", "torch": torch}, "requirements": torch}
        data |= {"result_columns": ["result", "params", "version"], "results": ratios}
        results.append(Result(Path(), commit, data))
    machine = MachineHistory("m", "m", results, Suite(core=("plain",), families=("dense",)))
    assert machine.facts["points"].startswith("2 commits,")
    (picture,) = machine.pictures()
    assert "over 2 commits" in picture.title


def test_commands_are_read_as_they_were_given() -> None:
    assert profile_of(FRONTIER[1:]) == "frontier"
    assert profile_of(["run", "throughput"]) == "standard"
    assert profile_of(["decide"]) == ""
    words = ["reproduce", "figure1", "--trials=60", "--depth", "10", "--depth", "20", "--workers", "2"]
    name, request = request_of(words, {"machines": {"cuda": "a-gpu"}}) or ("", Request(device="cpu"))
    assert (name, request) == ("figure1", Request(trials=60, depth=(10, 20), device="cuda"))
    assert (
        command_of(name, request) == "highway-bench reproduce figure1 --trials 60 --depth 10 --depth 20 --device cuda"
    )
    assert request_of(["reproduce", "gone"], {}) is None

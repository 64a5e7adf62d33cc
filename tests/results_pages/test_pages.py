"""The pages of docs/results: written from rows, with what is missing named, and checked against the rows."""

import csv
import json
import re
from dataclasses import replace

import pandas as pd
import pytest

from docs.pages.__main__ import PAGES, ROOT, Site, differences, main, others
from docs.pages.committed import Committed, command_of, request_of, study_of
from docs.pages.tables import claim_table, csv_text, markdown, pivot
from highway_bench.history.files import write_text
from highway_bench.results import Store, export, join_into, row
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.claims import Verdict
from highway_bench.studies.reproduce.lecture import REACHED
from highway_bench.studies.reproduce.request import Request
from tests.inline_engine import cell_of
from tests.reproduce.conftest import followed

ABSENT = "**Not measured.**"
FRONTIER = ["/a/path/highway-bench", "run", "--profile", "frontier", "--store", "/a/path/x.sqlite"]
THOUSAND = ["highway-bench", "reproduce", "thousand", "--seeds", "3"]
LOSSES = {("plain", 10): 0.09, ("plain", 50): 1.9, ("highway", 10): 0.041, ("highway", 50): 0.0567}


def metrics(cell, loss, seed):
    """What a training stores, with a little scatter over seeds."""
    success = float(loss < 0.23)
    accuracy = 0.95 - loss / 10 + (0.02 if cell.block == "plain" else 0.0)
    return {"final_loss": loss * (1 + 0.01 * seed), "success": success, "rate": 0.1, "test_accuracy": accuracy}


def put(store, run, command, values):
    """Store the metrics of cells as those of one run."""
    for number, (cell, metric) in enumerate(values.items()):
        common = {"run_id": run, "time_utc": "2026-01-02T03:04:05+00:00", "machine": "a-cpu"}
        common |= {"commit": "abc1234", "torch": "2.13.0", "digest": f"{run}-{number}", "status": "ok"}
        store.put(f"{run}-{number}", [row(**cell.columns(), **common, metric=name, value=value, unit="1")
                                      for name, value in metric.items()])  # fmt: skip
    times = {"started": "2026-01-02T03:00:00+00:00", "finished": "2026-01-02T04:30:00+00:00"}
    store.add_run(run, {"command": command, "machines": {"cpu": "a-cpu"}, "measured": len(values), **times})


def ladder():
    for (block, depth), loss in LOSSES.items():
        for seed in range(10):
            recipe = {"steps": 300, "optimiser": "sgd", "rate": "tuned", "rates": [0.1], "threshold": 0.1}
            cell = cell_of("trainability", block=block, depth=depth, dataset="mnist-5k", recipe=recipe, seed=seed)
            yield cell, metrics(cell, loss, seed)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
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
        export(store, folder / "rows/all.parquet")
    return folder / "rows"


@pytest.fixture(scope="module")
def written(data):
    """The pages and figures of these rows."""
    return Site(data, data / "points").write()


@pytest.fixture
def pages(written, tmp_path):
    """A folder with them."""
    for name, text in written.items():
        write_text(tmp_path / name, text)
    return tmp_path


def test_a_page_has_the_numbers_of_its_rows(pages):
    depth = (pages / "depth.md").read_text(encoding="utf-8")
    assert ABSENT not in depth
    assert "| dense | 50 | 0 of 10, 1.98 | 10 of 10, 0.0592 |" in depth
    runs = pd.read_csv(pages / "runs.csv")
    assert list(runs["command"]) == [
        "highway-bench run --profile frontier",
        "highway-bench reproduce thousand --seeds 3",
    ]


def test_a_claim_links_to_its_row(pages):
    text = (pages / "literature.md").read_text(encoding="utf-8")
    ((verdict, number, claim), *_) = re.findall(r"^- \[(.*)\]\(claims\.csv#L(\d+)\): (.*): \*\*", text, re.MULTILINE)
    assert verdict == "reproduced"
    row = list(csv.reader((pages / "claims.csv").read_text(encoding="utf-8").splitlines()))[int(number) - 1]
    assert row[:4] == ["thousand-1", "trained or timed", claim, "reproduced"]


def test_claims_whose_runs_did_not_end_or_need_more_are_no_verdicts(data):
    (whole,) = Site(data, data).repetitions
    ended = replace(whole.conclusion, findings=whole.conclusion.findings[:1])
    whole = whole._replace(conclusion=ended)
    part = whole._replace(conclusion=replace(ended, incomplete="42 of 84 runs did not end"))
    findings = [replace(one, claim=replace(one.claim, needs="more epochs")) for one in ended.findings]
    lacking = whole._replace(conclusion=replace(ended, findings=findings))
    table = claim_table([whole, part, lacking])
    assert list(table["verdict"]) == ["reproduced", "not measured", "not measured"]
    assert list(table["number"][1:]) == ["42 of 84 runs did not end", "0 runs: needs more epochs"]


def test_the_losses_that_keras_reaches_are_those_that_its_rows_reproduce():
    """``REACHED`` is written by hand, because a reproduction reads no rows but its own."""
    (keras,) = Committed.of(ROOT / "docs/data").repetitions(["lecture-keras"])
    names = {"training loss": "epoch_train_loss", "test loss": "epoch_test_loss"}
    reproduced = [one.claim.statement for one in keras.conclusion.findings if one.verdict == Verdict.REPRODUCED]
    found = {re.search(r"(training loss|test loss) of epoch (\d+)", statement) for statement in reproduced}
    assert {(names[one[1]], int(one[2])) for one in found if one} == REACHED


@pytest.mark.parametrize("later", [("skipped",), ("failed",), ("ok", "failed")])
def test_a_later_attempt_that_measured_less_replaces_none(later, tmp_path):
    for run, day, statuses in (("first", 2, ("ok",)), ("later", 3, later)):
        with Store(tmp_path / f"{run}.sqlite") as store:
            about = {"run_id": run, "time_utc": f"2026-01-0{day}T00:00:00+00:00", "digest": "one", "task": "cost"}
            rows = [row(**about, status=status, metric=f"metric {n}") for n, status in enumerate(statuses)]
            store.put("one", rows)
            store.add_run(run, {})
            join_into(tmp_path / "data", store)
    assert set(Committed.of(tmp_path / "data").rows["run_id"]) == {"first"}


def test_figures_are_small(pages):
    drawn = [*pages.rglob("*.svg"), *(ROOT / "docs/results").rglob("*.svg")]
    assert {path.name: path.stat().st_size for path in drawn if path.stat().st_size > 170_000} == {}


def test_what_lacks_rows_is_named_with_its_command(pages):
    texts = {page: (pages / f"{page}.md").read_text(encoding="utf-8") for page in PAGES}
    assert {page for page, text in texts.items() if ABSENT in text} == set(PAGES) - {"depth", "literature"}
    assert "`highway-bench peers` measures it" in texts["peers"]


def test_a_changed_number_is_noticed(written, pages):
    assert differences(written, pages) == []
    (figure, *_) = (name for name in written if "success" in name)
    for name in ("depth.md", "depth.csv", figure):
        path = pages / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("10", "11").replace("0.0592", "0.0593"), encoding="utf-8")
        assert f"{name}: -" in "\n".join(differences(written, pages))
    assert others(written, pages) == []
    (pages / "old.csv").touch()
    assert others(written, pages) == [pages / "old.csv"]


def test_the_check_of_pages(data, pages, capsys):
    arguments = ["--check", "--points", str(data / "points"), "--out", str(pages), "--data"]
    assert main([*arguments, str(data)]) == 0
    (pages / "broken.parquet").write_text("no", encoding="utf-8")
    assert main([*arguments, str(pages)]) == 2
    assert capsys.readouterr().err.startswith("error: cannot read")


def test_a_table_has_a_row_for_each_setting_in_their_order():
    cells = [("b", 2, "y"), ("b", 2, "x"), ("a", 10, "x")]
    table = pd.DataFrame(cells, columns=["family_label", "depth", "block"])
    wide = pivot(table, ["family_label", "depth"], "block", lambda one: one["block"] * one["depth"])
    head, _, *lines = markdown(wide).splitlines()
    assert head == "| family | depth | y | x |"
    assert lines == ["| b | 2 | yy | xx |", "| a | 10 | – | xxxxxxxxxx |"]


def test_numbers_of_a_file_are_exact_if_they_are_whole():
    table = pd.DataFrame({"bytes": [1234567.0, 0.123456], "none": [None, None], "recipe": ["{}", "{}"]})
    assert csv_text(table) == "bytes\n1234567\n0.1235\n"


PROOFS = {
    "gate": [{"kind": "same", "load": "idle", "boot": "1", "values": {"plain dense 10": [1.0, 0.1]}}] * 30,
    "advice": [{"kind": "known", "rules": 2, "family": "conv", "best": ["plain", "published"], "use": [], "minutes": 5,
                "verdict": "undecided", "commit": "0123456789", "machine": "cpu"}],
}  # fmt: skip


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_is_a_table(data, tmp_path, name):
    site = Site(data, tmp_path)
    site.data = tmp_path
    assert ABSENT in site.proof(name)
    (tmp_path / f"{name}-proof.jsonl").write_text("\n".join(map(json.dumps, PROOFS[name])), encoding="utf-8")
    head, rule, row, *_ = site.proof(name).strip().splitlines()
    assert rule.startswith("| --- | --- |")
    assert head.count("|") == rule.count("|") == row.count("|")


def test_commands_are_read_as_they_were_given():
    assert study_of({"command": FRONTIER}) == "run"
    assert study_of({"command": ["highway-bench", "run", "--profile", "smoke"]}) == ""
    assert study_of({"command": ["highway-bench", "forecast", "--starts"]}) == "decide"
    assert command_of({"command": FRONTIER}) == "highway-bench run --profile frontier"
    words = ["highway-bench", "reproduce", "figure1", "--trials=60", "--depth", "10", "--depth", "20", "--workers", "2"]
    record = {"command": words, "machines": {"cuda": "a-gpu"}}
    assert request_of(record) == ("figure1", Request(trials=60, depth=(10, 20), device="cuda"))
    assert command_of(record) == "highway-bench reproduce figure1 --trials=60 --depth 10 --depth 20"
    assert request_of({"command": ["highway-bench", "reproduce", "gone"]}) is None
    assert request_of({}) is None

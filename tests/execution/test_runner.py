"""The runner: every cell has rows, no cell is measured twice, and no measurement is lost."""

from __future__ import annotations

import json

import pytest

from highway_bench.errors import BadInput, UnknownName
from highway_bench.execution.engines.local import LocalEngine
from highway_bench.execution.progress import Finished, Opened, Started
from highway_bench.execution.schedule import Schedule
from highway_bench.provenance import identity
from highway_bench.provenance.machine import processor
from highway_bench.results import COLUMNS, Status, Store, export, import_rows


def column(log, number):
    """Of the cells that have begun: block, depth, seed, trial, rate or process, by the number of the column."""
    return [line.split()[number] for line in log.read_text(encoding="utf-8").splitlines()]


def test_a_worker_that_cannot_write_costs_its_cells_alone(run, store, cell):
    """Which of a group's cells failed to write is not known, so the others are tried one by one."""
    cells = [cell(), *(cell("full-disk", task="fake-trials", seed=seed) for seed in range(2)), cell(task="fake-timing")]
    summary = run(cells, workers=1)
    rows = sorted((row["task"], row["status"], row["message"]) for row in store.rows(metric="loss"))
    why = "in the worker: OSError: [Errno 27] File too large"
    assert rows == [("fake", "ok", None), ("fake-timing", "ok", None), *[("fake-trials", "failed", why)] * 2]
    assert (summary.measured, summary.exit_status) == (4, 1)


def test_a_plug_in_that_exits_in_the_worker(run, fakes, store, cell, tmp_path, monkeypatch):
    source = "import multiprocessing, sys\nif multiprocessing.parent_process() is not None: sys.exit(7)\n"
    (tmp_path / "leaves_in_workers.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    run([cell()], workers=1, plugins=[fakes, "leaves_in_workers"])
    assert {(row["status"], row["message"]) for row in store.rows()} == {
        ("failed", "plug-in 'leaves_in_workers' failed to import: SystemExit: 7")
    }


def test_row_of_a_measured_cell(run, store, cell):
    summary = run([cell(depth=3)], command=["bench", "--now"])
    time, loss = store.rows()
    assert list(time) == list(COLUMNS)
    said = {"metric": "time", "unit": "s", "better": "lower", "depth": 3, "value": 2.0, "low": 1.0, "high": 3.0, "n": 3}
    said |= {"samples": "[1.0, 2.0, 3.0]", "params": 12, "flops_per_item": 24.0, "run_id": summary.run_id}
    assert time.items() >= (said | identity()._asdict()).items()
    assert (loss["samples"], loss["n"], loss["axis"], loss["index"]) == (None, 1, "", 0.0)
    run = store.runs()[summary.run_id]
    assert run["command"] == ["bench", "--now"]
    assert run["started"] <= time["time_utc"] <= run["finished"]
    assert (run["processor"]["brand"], run["processor"]["stepping"]) == (processor().brand, processor().stepping)
    assert "H(x)" in run["blocks"]["plain"]["equation"]
    assert run["tasks"]["fake"]["metrics"]["time"] == {"unit": "s", "better": "lower", "label": "time"}


def test_a_cell_without_a_number_has_the_reason_in_a_row_of_every_metric(run, store, cell):
    run([cell("raise"), cell("not-finite", depth=2)])
    failed = [(row["metric"], row["value"], row["status"]) for row in store.rows(depth=1)]
    assert failed == [("time", None, "failed"), ("loss", None, "failed")]
    time, loss = store.rows(depth=2)
    assert (time["value"], time["status"], json.loads(time["samples"])) == (None, "failed", [1.0, None])
    assert "1 of 2 samples" in time["message"]
    assert (loss["value"], loss["status"], loss["message"]) == (None, "diverged", "value is inf")


def test_resume_measures_only_what_is_missing_or_failed(run, cell, log):
    first = [cell(depth=1), cell("skip", depth=2), cell("raise", depth=3), cell("diverge", depth=4)]
    run(first)
    summary = run([*first, cell(depth=5)])
    assert column(log, 1) == ["1", "3", "4", "3", "5"]
    assert (summary.measured, summary.stored) == (2, 3)
    assert summary.counts == {"ok": 2, "skipped": 1, "failed": 1, "diverged": 1}


def test_a_runs_record_names_the_digests_of_all_its_cells(run, store, cell):
    """Those of the current source, as only the record shows where nothing was measured: see the report's ``newest``."""
    first = run([cell(depth=1)])
    second = run([cell(depth=1), cell("raise", depth=2), cell("skip", depth=3)])
    third = run([cell(depth=1), cell(depth=1)])
    run([])
    runs = store.runs()
    assert list(runs) == [first.run_id, second.run_id, third.run_id]
    assert runs[second.run_id]["digests"] == sorted({row["digest"] for row in store.rows()})
    assert (runs[third.run_id]["measured"], runs[third.run_id]["digests"]) == (0, [*third.digests.values()])
    assert (third.measured, third.stored, third.exit_status) == (0, 1, 0)


def test_no_result_is_no_success(run, cell):
    assert run([]).exit_status == 3
    assert run([cell("skip")]).exit_status == 3
    assert run([cell("skip"), cell("diverge")]).exit_status == 0


def test_an_engine_opens_before_anything_is_planned(run, store, cell, monkeypatch):
    """A cluster that cannot be used is refused before the runner reads sources or decides which cells run."""

    class Refused(LocalEngine):
        def __enter__(self) -> Refused:
            raise BadInput("another torch")

    monkeypatch.setattr(Schedule, "ready", lambda self: pytest.fail("planned"))
    engine = Refused(1)
    with pytest.raises(BadInput, match="another torch"):
        run([cell()], engine=engine)
    engine.__exit__(None, None, None)
    assert store.runs() == {}


def test_cells_that_ended_survive_a_later_one_of_their_group(run, store, cell, log):
    group = [cell(task="fake-trials", seed=seed) for seed in range(3)]
    group.insert(2, cell("kill", task="fake-trials", seed=9))
    run(group, workers=1)
    ends = {row["seed"]: row["status"] for row in store.rows(metric="loss")}
    assert ends == {**dict.fromkeys(range(3), "ok"), 9: "crashed"}
    assert column(log, 2) == ["0", "1", "9", "9", "2"]  # 0 and 1 not again


def test_a_cell_added_to_a_timing_group_is_measured_alone(run, store, cell, log):
    pair = [cell(task="fake-timing", block="plain"), cell(task="fake-timing", block="highway")]
    first = run(pair[:1])
    second = run(pair)
    assert column(log, 0) == ["plain", "highway"]
    assert {row["block"]: row["run_id"] for row in store.rows()} == {"plain": first.run_id, "highway": second.run_id}


def test_a_crash_costs_no_result(run, store, cell, tmp_path):
    """A cell that is measured again on request crashes: the run fails, the old result stays, and the next run tries
    again."""
    flag = tmp_path / "flag"
    cells = [cell("crash-later", file=str(flag))]
    run(cells)
    before = store.rows()
    flag.touch()
    for rerun in ("all", "failed"):
        crashed = run(cells, rerun=rerun, workers=1)
        assert (crashed.counts, crashed.stored, crashed.exit_status) == ({"crashed": 1}, 0, 1)
        assert store.rows()[:-1] == before
        assert store.rows()[-1]["run_id"] == crashed.run_id
    flag.unlink()
    healthy = run(cells)
    assert {(row["status"], row["run_id"]) for row in store.rows()} == {("ok", healthy.run_id)}
    assert run(cells).stored == 1


def test_processes_do_not_serve_two_tasks_or_modes(run, cell, log):
    cells = [cell(depth=1), cell(depth=2).but(mode="compile"), cell(depth=3), cell(depth=4, task="fake-trials")]
    run(cells, workers=1)
    process = dict(zip(column(log, 1), column(log, -1), strict=True))
    assert process["1"] == process["3"]
    assert len({process["1"], process["2"], process["4"]}) == 3


def test_needed_cells_run_first_and_decide(run, store, cell, log):
    final = cell(task="fake-search", losses=[[0.1, 0.9], [0.01, 0.2], [0.001, 0.4]])
    assert run([final], workers=2).measured == 4
    assert (column(log, 3)[-1], column(log, 4)[-1]) == ("None", "0.01")
    (row,) = store.rows(trial=None, metric="loss")
    assert json.loads(row["recipe"]) == dict(final.recipe)  # the identity of the requested cell
    again = run([final])
    assert (again.measured, again.stored) == (0, 4)
    (winner,) = store.rows(trial=1, metric="loss")
    store.put(winner["digest"], [winner | {"value": 5.0}])
    assert run([final]).measured == 1  # another winner is another measurement
    assert column(log, 4)[-1] == "0.001"


def test_a_cell_that_cannot_be_resolved_is_a_row(run, store, cell):
    final = cell(task="fake-search", losses=[[0.1, None]])
    run([final])
    row = store.rows(trial=None, metric="loss")[0]
    assert (row["status"], row["message"]) == ("skipped", "no trial has a loss")


def test_events(run, cell):
    events = []
    cells = [cell(depth=1), cell("raise", depth=2)]
    run(cells, on_event=events.append)
    opened, *others = events
    assert opened == Opened(cells=2, stored=0, other_sources=0, resumed=0, left=0.02)
    assert [type(event) for event in others] == [Started, Finished, Started, Finished]
    last = others[-1]
    assert (last.cell, last.status, last.done, last.cells, last.left) == (cells[1], "failed", 2, 2, 0.0)


@pytest.mark.parametrize("change", [{"task": "fakee"}, {"block": "highwya"}, {"family": "dence"}, {"dataset": "digit"}])
def test_unknown_name(run, store, cell, change):
    with pytest.raises(UnknownName, match="did you mean"):
        run([cell(), cell().but(**change)])
    assert store.rows() == []


@pytest.mark.parametrize(
    ("task", "changes", "status"),
    [
        ("fake", {"machine": "cpu-other-8c", "torch": "{torch}+other"}, "ok"),  # a loss depends on neither
        ("fake", {"torch": "1.0.0"}, "failed"),
        ("fake-timing", {}, "ok"),
        ("fake-timing", {"machine": "nvidia-h200", "gpu": "NVIDIA H200"}, "failed"),
        ("fake-timing", {"torch": "{torch}+other"}, "ok"),  # another build of the same version
    ],
)
def test_a_row_names_the_machine_that_its_cell_ran_on(
    run,
    store,
    cell,
    elsewhere,
    task,
    changes,
    status,
):
    """A result of another machine or torch than that of its digest is a failure."""
    here = identity()
    there = here._replace(**{name: text.format(torch=here.torch) for name, text in changes.items()})
    run([cell(task=task)], engine=elsewhere(there))
    (row,) = store.rows(metric="loss")
    assert (row["status"], row["machine"], row["gpu"], row["torch"]) == (status, *there)
    if status == "failed":
        assert f"ran on {there.machine} with torch {there.torch}" in row["message"]
        assert f"planned for {here.machine} with torch {here.torch}" in row["message"]


@pytest.mark.parametrize(
    ("rerun", "again"),
    [
        ("failed", {"3"}),
        ("all", {"1", "2", "3"}),
        ("depth 2", {"2", "3"}),
        ("fake plain*depth [12]", {"1", "3"}),
        ("highway*", {"2", "3"}),
    ],
)
def test_what_is_measured_again(run, cell, log, rerun, again):
    cells = [cell(depth=1), cell(depth=2, block="highway"), cell("raise", depth=3)]
    run(cells)
    log.write_text("")
    run(cells, rerun=rerun)
    assert set(column(log, 1)) == again


@pytest.mark.parametrize("rerun", ["depth 7", ""])
def test_a_pattern_of_no_cell(run, store, cell, rerun):
    with pytest.raises(BadInput, match=f"'{rerun}'"):
        run([cell()], rerun=rerun)
    assert store.runs() == {}


def test_a_store_of_imported_rows_goes_on(run, store, cell, tmp_path):
    cells = [cell(seed=seed) for seed in range(3)] + [cell("diverge"), cell("raise"), cell("skip")]
    first = run(cells)
    export(store, tmp_path / "rows.parquet")
    import_rows(tmp_path / "elsewhere.sqlite", tmp_path / "rows.parquet")
    with Store(tmp_path / "elsewhere.sqlite") as elsewhere:
        again = run([*cells, cell(seed=3)], store=elsewhere)
        assert (again.stored, again.measured) == (5, 2)  # the failure is measured again, and the new cell
        assert again.digests | first.digests == again.digests
    assert first.counts == {Status.OK: 3, Status.DIVERGED: 1, Status.FAILED: 1, Status.SKIPPED: 1}

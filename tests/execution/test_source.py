"""A source that changes during a run: no row is stored under the digest of another source."""

import sys
from pathlib import Path

import pytest

from highway_bench.execution.engines.local import LocalEngine
from highway_bench.execution.job import Ended
from highway_bench.execution.progress import Finished
from highway_bench.execution.runner import run_cells
from highway_bench.source import SourceCheck, SourceTree

BROKEN = "def VALUE(:\n"


@pytest.fixture
def layers(tmp_path, monkeypatch):
    """A user's module; a cell with ``do="value"`` has the module's number as its loss."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    path = folder / "own_layers.py"
    path.write_text("VALUE = 2.353\n", encoding="utf-8")
    yield path
    sys.modules.pop("own_layers", None)


@pytest.fixture
def run(fakes, store, cell, layers):
    """Run two cells of the user's layer, of two tasks; ``edit`` replaces its source once the first has ended."""

    def both(edit=None):
        def on_event(event):
            if isinstance(event, Finished) and edit is not None:
                layers.write_text(edit, encoding="utf-8")

        cells = [cell("value", task=task).but(family="own_layers:make") for task in ("fake", "fake-trials")]
        return run_cells(cells, store, workers=1, plugins=[fakes], on_event=on_event)

    return both


def losses(store):
    return {row["task"]: (row["value"], row["status"], row["message"]) for row in store.rows(metric="loss")}


CHANGED = (None, "failed", "source changed during the run: own_layers")
RIGHT = (2.353, "ok", None)


@pytest.mark.parametrize("edit", ["VALUE = 9213\n", BROKEN])
def test_a_plug_in_edited_between_two_tasks(run, store, layers, edit):
    summary = run(edit=edit)
    assert losses(store) == {"fake": RIGHT, "fake-trials": CHANGED}
    assert summary.exit_status == 1
    layers.write_text("VALUE = 2.353\n", encoding="utf-8")  # the edit undone: a failure is tried again
    summary = run()
    assert losses(store) == {"fake": RIGHT, "fake-trials": RIGHT}
    assert (summary.measured, summary.stored) == (1, 1)


def test_a_remark_is_no_change(run, store):
    run(edit="# the published value\nVALUE = 2.353\n")
    assert losses(store) == {"fake": RIGHT, "fake-trials": RIGHT}


@pytest.mark.parametrize("edit", ["VALUE = 9213\n", None])
def test_a_source_changed_while_a_cell_is_measured(fakes, store, cell, layers, edit):
    """The worker may have imported either source. Results from before the edit are valid, and no later cell begins."""
    cells = [
        cell(do, task="fake-trials", seed=seed, edit=edit, file=str(layers)).but(family="own_layers:make")
        for seed, do in enumerate(("value", "edit", "value"))
    ]
    run_cells(cells, store, workers=1, plugins=[fakes])
    rows = sorted(store.rows(metric="loss"), key=lambda row: row["seed"])
    assert [(row["value"], row["status"], row["message"]) for row in rows] == [RIGHT, CHANGED, CHANGED]


def test_a_later_batch_with_another_module_gets_a_worker_that_reads_it_before_its_imports(job, cell, log, layers):
    """Both batches are of one kind. A worker that knows the modules of the second runs it too."""
    one = cell("value", task="fake-trials")
    other = one.but(family="own_layers:make")
    sources = {one: {}, other: SourceTree().fingerprints(["own_layers"])}
    with LocalEngine(1) as engine:
        for ran in (one.but(recipe={"do": "measure", "log": str(log)}), other, other):
            events = engine.run([job(ran, sources=sources.get(ran, {}))])
            assert [event.result.status for event in events if isinstance(event, Ended)] == ["ok"]
    first, second, third = (line.split()[-1] for line in log.read_text().splitlines())
    assert first != second == third


def test_what_was_imported_counts_even_if_the_edit_is_undone(layers):
    planned = SourceTree().fingerprints(["own_layers"])
    layers.write_text("VALUE = 9213\n", encoding="utf-8")
    edited = SourceCheck(planned)  # a worker that starts now imports the edit
    layers.write_text("VALUE = 2.353  # again\n", encoding="utf-8")
    assert SourceCheck(planned).changed(planned) is None
    assert str(edited.changed(planned)) == "source changed during the run: own_layers"


def test_a_file_is_read_again_only_where_it_was_written(layers, monkeypatch):
    planned = SourceTree().fingerprints(["own_layers"])
    check = SourceCheck(planned)
    reads = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path) or read(path))
    assert [check.changed(planned) for _ in range(3)] == [None] * 3
    assert reads == []
    layers.write_text("VALUE = 9213\n", encoding="utf-8")
    assert [str(check.changed(planned)) for _ in range(3)] == ["source changed during the run: own_layers"] * 3
    assert reads == [layers]

"""How far a run is: in a terminal, in a log, and in its store, read while it runs and after it stopped."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.execution import runner
from highway_bench.execution.progress import (
    Finished,
    Lines,
    Opened,
    Started,
    duration,
    log_file,
    showing_progress,
)
from highway_bench.results import Status, Store
from highway_bench.results.run_status import run_status
from tests.inline_engine import cell_of

CELL = cell_of("memory", block="[red]")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (3000, "50 min"), (5400, "1 h 30 min"), (7260, "2 h 1 min")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_lines():
    out, now = io.StringIO(), [0.0]
    lines = Lines(Console(file=out), clock=lambda: now[0])
    lines(Opened(cells=4, stored=1, other_sources=0, resumed=2, left=100.0))
    lines(Started((CELL,)))
    lines(Finished(CELL, Status.OK, None, 1.0, 2, 4, 50.0))  # too soon for another line
    now[0] = 11.0
    lines(Finished(CELL, Status.OOM, "out of memory", 1.0, 3, 4, 20.0))
    lines(Finished(CELL, Status.OK, None, 1.0, 4, 4, 0.0))
    plan, failure, end = out.getvalue().splitlines()
    assert "about 2 min" in plan
    assert failure == f"oom: {CELL}: out of memory"
    assert end.startswith("4/4")


def test_bar():
    out = io.StringIO()
    with showing_progress(Console(file=out, force_terminal=True, width=160)) as show:
        show(Opened(cells=2, stored=0, other_sources=0, resumed=1, left=100.0))
        show(Started((CELL,)))
        show(Finished(CELL, Status.FAILED, "why", 1.0, 1, 2, 50.0))
        show(Finished(CELL, Status.OK, None, 1.0, 2, 2, 0.0))
    assert f"{CELL}: why" in out.getvalue()
    assert "2/2" in out.getvalue()


def test_a_run_is_seen_from_outside(run, store, cell, monkeypatch):
    monkeypatch.setattr(runner, "NOTED", 0.0)
    seen = []

    def on_event(event):
        if isinstance(event, (Started, Finished)):
            seen.append(run_status(store.path))
        if isinstance(event, Finished) and event.done == 3:
            raise KeyboardInterrupt

    cells = [cell(depth=1), cell("raise", depth=2), cell(depth=3), cell(depth=4)]
    run(cells[:1])
    with pytest.raises(KeyboardInterrupt):
        run(cells, on_event=on_event)
    assert {one.state for one in seen} == {"running"}
    assert [(one.done, one.failed, one.running) for one in seen[:3]] == [
        (1, 0, [str(cells[1])]),
        (2, 1, []),
        (2, 1, [str(cells[2])]),
    ]
    assert [row["message"][:13] for row in seen[1].failures] == ["RuntimeError:"]
    assert all(one.left > 0 for one in seen[:3])
    store.close()
    stopped = run_status(store.path)
    assert (stopped.state, stopped.cells, stopped.running, stopped.failed) == ("interrupted", 4, [], 1)
    with Store(store.path) as again:
        run([cells[0], *cells[2:]], store=again)
        assert run_status(again.path).state == "running"  # until the store is closed
    finished = run_status(store.path)
    assert (finished.state, finished.done, finished.counts, finished.left) == ("finished", 3, {"ok": 3}, 0.0)


def test_a_store_without_a_run(tmp_path):
    with pytest.raises(BadInput, match="no store"):
        run_status(tmp_path / "s")
    Store(tmp_path / "s").close()
    with pytest.raises(NothingMeasured, match="progress"):
        run_status(tmp_path / "s")


def test_a_log_that_a_person_can_read(run, cell, tmp_path):
    path = tmp_path / "deep" / "log.txt"
    for cells in ([cell(depth=1)], [cell(depth=1), cell("raise", depth=2)]):
        with showing_progress(log=path) as on_event:
            run(cells, on_event=on_event)
    with pytest.raises(KeyboardInterrupt), showing_progress(log=path):
        raise KeyboardInterrupt
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 9
    assert "1/1 ok" in lines[2]
    assert f"{cell(depth=2)}: RuntimeError" in lines[6]
    assert "KeyboardInterrupt" in lines[-1]


def test_a_log_that_cannot_be_written(tmp_path):
    with pytest.raises(BadInput, match="log"), log_file(tmp_path):
        pass
    with log_file(Path("/dev/full")) as note:  # the run goes on
        note(Opened(cells=1, stored=0, other_sources=0, resumed=0, left=0.0))

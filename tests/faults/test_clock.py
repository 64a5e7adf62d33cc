"""The system's clock is set in the middle of a run: no cell is lost, and a report shows the newer rows all the same."""

from __future__ import annotations

import sys
import time
from datetime import datetime, timedelta, tzinfo

import pytest

from highway_bench.execution import record
from highway_bench.execution.progress import Finished
from highway_bench.execution.record import RunClock
from highway_bench.execution.runner import run_cells
from highway_bench.frames.rows import prepared
from highway_bench.results import Store
from tests.faults.scale import note
from tests.inline_engine import cell_of


@pytest.fixture
def layers(tmp_path, monkeypatch):
    """A user's module, whose number is the loss of a cell with ``do="value"``."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder / "own_layers.py"
    sys.modules.pop("own_layers", None)


@pytest.fixture
def set_clock(monkeypatch):
    """Sets the clock of this process, the one that rows, the pool and Python's own libraries read, by some seconds."""
    read = time.time

    def by(seconds):
        class Shifted(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:
                return datetime.now(tz) + timedelta(seconds=seconds)

        monkeypatch.setattr(record, "datetime", Shifted)
        monkeypatch.setattr(time, "time", lambda: read() + seconds)

    return by


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_clock_that_is_set_in_mid_run(fakes, tmp_path, set_clock, jump):
    """It ends no cell, a hanging one is stopped all the same, and no row is older than one before it."""
    doing = dict.fromkeys(range(1, 14), "measure") | {7: "hang"}
    cells = [
        cell_of(depth=depth, recipe={"log": str(tmp_path / "log"), "do": do, "timeout": 3.0 if do == "hang" else 60.0})
        for depth, do in doing.items()
    ]

    def on_event(event):
        if isinstance(event, Finished) and event.done == 3:
            set_clock(jump)

    with Store(tmp_path / "s.sqlite") as store:
        run_cells(cells, store, workers=2, plugins=[fakes], on_event=on_event)
        found = store.rows(metric="loss")
        assert {row["depth"]: row["status"] for row in found} == {
            depth: "timeout" if do == "hang" else "ok" for depth, do in doing.items()
        }
        times = [row["time_utc"] for row in found]  # in the order of storing
        assert times == sorted(set(times))
        (run,) = store.runs().values()
        assert run["started"] < times[0]
        assert times[-1] < run["finished"]
    note(f"clock set by {jump:g} s", cells=len(cells), out_of_order=0)


def test_an_edit_and_a_clock_set_back(fakes, layers, tmp_path, set_clock):
    """The report shows what the newer source gave."""
    path = tmp_path / "s.sqlite"
    recipe = {"log": str(tmp_path / "log"), "do": "value"}
    cells = [cell_of(family="own_layers:make", depth=depth, recipe=recipe) for depth in (1, 2, 3)]
    values = (1.0, 22.0, 333.0)
    for number, value in enumerate(values):
        layers.write_text(f"VALUE = {value}\n", encoding="utf-8")
        set_clock(-86_400.0 * number)
        with Store(path) as store:
            assert run_cells(cells, store, workers=1, plugins=[fakes]).measured == len(cells)
            shown = prepared(store.frame(), store.runs())
            assert list(shown["value"]) == [value] * len(cells)
    note("clock set back after an edit", cells=len(cells), old_rows_shown=0)


@pytest.mark.parametrize("last", [None, "", "yesterday", "2026-13-45T00:00", "0001-01-01T00:00:00"])
def test_a_store_without_a_later_time(last):
    before = record.now()
    assert before <= RunClock(last).now() <= record.now()


def test_a_time_after_the_newest_of_a_store():
    assert RunClock("9999-12-31T23:59:00-12:00").now() <= record.now()  # no moment of UTC's calendar
    clock = RunClock("9998-01-01T00:00:00")
    assert [clock.now() for _ in range(2)] == [f"9998-01-01T00:00:00.00000{number}+00:00" for number in (1, 2)]
    end = "9999-12-31T23:59:59.999999+00:00"
    clock = RunClock(end)
    assert clock.now() <= end

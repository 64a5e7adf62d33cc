"""Fixtures of the runner's tests: the fake tasks, a store, and cells whose recipe says what their task does."""

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from highway_bench.execution.job import CellResult
from highway_bench.execution.runner import run_cells
from highway_bench.results import Status, Store
from highway_bench.tasks import tasks
from highway_bench.tasks.measurement import Measurement
from tests.inline_engine import FakeEngine, InlineEngine, cell_of, job_of

FOLDER = Path(__file__).parent


@contextmanager
def imported(*plugins):
    """Within it, the tasks of ``plugins`` are registered."""
    for name in plugins:
        importlib.import_module(name)
    yield
    for name in tasks.names():
        if tasks.module_of(name) in plugins:
            tasks.unregister(name)
    for name in plugins:
        sys.modules.pop(name, None)


@pytest.fixture
def fakes(monkeypatch):
    """The plug-in with the fake tasks: importable here and in workers, and unregistered afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    with imported("runner_fakes"):
        yield "runner_fakes"


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def run(fakes, store, tmp_path):
    """Runs cells of the fake tasks into the store in this process; given ``workers``, in so many of the local engine.

    In workers run the cells that may end a process, and those whose worker matters.
    """

    def call(cells, **options):
        engine = "local" if "workers" in options else InlineEngine(tmp_path)
        return run_cells(cells, **{"store": store, "plugins": [fakes], "engine": engine} | options)

    return call


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.txt"
    path.touch()
    return path


@pytest.fixture
def cell(log):
    """Builds a cell of a fake task; further keywords are words of its recipe."""

    def make(do="measure", *, task="fake", block="plain", depth=1, seed=0, **recipe):
        return cell_of(task, block=block, depth=depth, seed=seed, recipe={"do": do, "log": str(log), **recipe})

    return make


@pytest.fixture
def job(fakes):
    """Builds a job of cells of the fake tasks; keywords change its fields."""
    return lambda *cells, **changes: job_of(*cells, **{"plugins": (fakes,)} | changes)


@pytest.fixture
def elsewhere():
    """Builds an engine whose workers run on another machine, and measure a loss of 1."""
    loss = Measurement(metric="loss", value=1.0)

    def on(machine):
        return FakeEngine(
            lambda index: CellResult(index=index, status=Status.OK, measurements=(loss,), identity=machine)
        )

    return on

"""Fixtures of the runner's tests: the fake tasks, a store, and cells whose recipe says what their task does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.execution.job import Began, CellResult, Ended, Job
from highway_bench.execution.runner import Summary, run_cells
from highway_bench.provenance import Identity
from highway_bench.results import Status, Store
from highway_bench.tasks import tasks
from highway_bench.tasks.measurement import Measurement
from tests.inline_engine import InlineEngine

FAKES = "runner_fakes"


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The plug-in with the fake tasks: importable here and in workers, and unregistered afterwards."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    importlib.import_module(FAKES)
    yield FAKES
    for name in tasks.names():
        if tasks.module_of(name) == FAKES:
            tasks.unregister(name)
    sys.modules.pop(FAKES, None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def run(fakes: str, store: Store, tmp_path: Path) -> Callable[..., Summary]:
    """Runs cells of the fake tasks into the store in this process; given ``workers``, in so many of the local engine.

    In workers run the cells that may end a process, and those whose worker matters.
    """

    def call(cells: Iterable[Cell], **options: Any) -> Summary:
        engine = "local" if "workers" in options else InlineEngine(tmp_path)
        return run_cells(cells, **{"store": store, "plugins": [fakes], "engine": engine} | options)

    return call


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.touch()
    return path


@pytest.fixture
def cell(log: Path) -> Callable[..., Cell]:
    """Builds a cell of a fake task; further keywords are words of its recipe."""

    def make(
        do: str = "measure", *, task: str = "fake", block: str = "plain", depth: int = 1, seed: int = 0, **recipe: Any
    ) -> Cell:
        return Cell(
            task=task,
            block=block,
            family="dense",
            depth=depth,
            width=8,
            nominal_width=8,
            seed=seed,
            recipe={"do": do, "log": str(log), **recipe},
        )

    return make


@pytest.fixture
def job(fakes: str) -> Callable[..., Job]:
    """Builds a job of cells of the fake tasks, of the first one's task; further keywords change its fields."""

    def make(*cells: Cell, **changes: Any) -> Job:
        fields = {
            "task": cells[0].task,
            "keys": tuple(map(str, range(len(cells)))),
            "cells": cells,
            "mode": "eager",
            "threads": 1,
            "alone": False,
            "timeouts": (60.0,) * len(cells),
            "plugins": (fakes,),
        }
        return Job(**fields | changes)

    return make


class Elsewhere:
    """An engine whose workers run on the machine of ``identity``, and measure a loss of 1."""

    workers = 1

    def __init__(self, identity: Identity) -> None:
        self.identity = identity

    def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
        loss = Measurement(metric="loss", value=1.0)
        for job in jobs:
            yield Began(job)
            for index in range(len(job.cells)):
                result = CellResult(index=index, status=Status.OK, measurements=(loss,), identity=self.identity)
                yield Ended(job, CellResult.of_line(result.line()))

    def drain(self) -> Iterator[Ended]:
        return iter(())

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def elsewhere() -> Callable[[Identity], Elsewhere]:
    """Builds an engine on another machine."""
    return Elsewhere

"""The cost of the tool itself: the start of a process, and the runner's time per cell.

nox -s step -- benches/test_overhead.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from highway_bench.cell import Cell
from highway_bench.execution.progress import Event, Finished
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

CELLS = 200


def processor_time() -> float:
    """Seconds of the processes that this one has started and that ended, in all their threads."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.benchmark(timer=processor_time)
@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "pass"],
        ["-c", "import highway_bench"],
        ["-c", "import torch"],
        ["-m", "highway_bench", "--help"],
        ["-m", "highway_bench", "list"],
        ["-m", "highway_bench", "show", "highway"],
        ["-m", "highway_bench", "run", "--dry-run"],
    ],
    ids=" ".join,
)
def test_start(benchmark: BenchmarkFixture, arguments: list[str], tmp_path: Path) -> None:
    """The processor time of commands that measure nothing."""
    benchmark.group = "start of a process"
    benchmark.pedantic(
        subprocess.run,
        ([sys.executable, *arguments],),
        {"check": True, "capture_output": True, "cwd": tmp_path},
        rounds=5,
        warmup_rounds=1,
    )


def idle_cells() -> list[Cell]:
    """Cells that take no time."""
    return [
        Cell(task="idle", block="plain", family="dense", depth=1, width=1, nominal_width=1, seed=seed)
        for seed in range(CELLS)
    ]


@pytest.fixture
def idle_task(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the plug-in with the task, importable here and in workers."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return "idle_task"


def test_runner_measuring(benchmark: BenchmarkFixture, idle_task: str, tmp_path: Path) -> None:
    """A run of 200 idle cells. Most of it is the worker's start; extra_info has milliseconds a cell after that."""
    end_times: list[float] = []

    def note(event: Event) -> None:
        if isinstance(event, Finished):
            end_times.append(time.perf_counter())

    def run() -> None:
        end_times.clear()
        with Store(tmp_path / f"{time.monotonic_ns()}.sqlite") as store:
            run_cells(idle_cells(), store, workers=1, plugins=[idle_task], on_event=note, command=["bench"])

    benchmark.group = f"a run of {CELLS} idle cells"
    benchmark.pedantic(run, rounds=3)
    assert len(end_times) == CELLS
    benchmark.extra_info["milliseconds_a_cell"] = 1e3 * (end_times[-1] - end_times[0]) / (CELLS - 1)


def test_runner_resuming(benchmark: BenchmarkFixture, idle_task: str, tmp_path: Path) -> None:
    """The same run again, with a result of every cell in the store."""
    with Store(tmp_path / "results.sqlite") as store:
        run_cells(idle_cells(), store, workers=1, plugins=[idle_task], command=["bench"])
        benchmark.group = f"a run of {CELLS} idle cells"
        summary = benchmark.pedantic(
            run_cells, (idle_cells(), store), {"plugins": [idle_task], "command": ["bench"]}, rounds=10
        )
    assert summary.stored == CELLS

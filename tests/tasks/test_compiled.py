"""Compiled cells really run compiled: through inductor, in worker processes, and after the memory tracker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.execution.engines._pool import WorkerKind
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

AFTER_THE_TRACKER = """
import functools, torch
from highway_bench.cell import Cell
from highway_bench.tasks import tasks

calls = []
def backend(graph, inputs):
    def compiled(*values):
        calls.append(len(values))
        return graph(*values)
    return compiled

torch.compile = functools.partial(torch.compile, backend=backend)
cell = Cell(task="memory", block="highway", family="dense", depth=2, width=8, nominal_width=8, batch_size=4,
            phase="forward")
task = tasks.get("memory")
assert {m.message for m in task.measurements(task.prepare(cell), cell)} >= {"meter: tracker"}
work = tasks.get("throughput").prepare(cell.but(task="throughput", mode="compile"))
assert not calls
work.step()
first = len(calls)
work.step()
assert (first, len(calls)) == (1, 2), calls
"""


def test_a_compiled_cell_after_a_memory_cell_of_the_same_process() -> None:
    """The worst case, which the runner avoids: even then each step runs the compiled graph."""
    done = subprocess.run([sys.executable, "-c", AFTER_THE_TRACKER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_memory_then_inductor_through_the_runner(tmp_path: Path) -> None:
    """Inductor on two stacks, after their memory cells; a worker serves one task and one mode."""
    cells = [
        Cell(
            task="memory",
            block=block,
            family="dense",
            depth=1,
            width=8,
            nominal_width=8,
            batch_size=4,
            phase="train-step",
        )
        for block in ("highway", "plain")
    ]
    recipe = {"seconds": 0.0, "samples": 3, "processes": 1, "limit": 0}  # each process would compile again
    cells += [cell.but(task="throughput", phase="forward-backward", mode="compile", recipe=recipe) for cell in cells]
    with Store(tmp_path / "store.sqlite") as store:
        summary = run_cells(cells, store, workers=1)
        assert summary.counts == {"ok": 4}
        for row in store.rows(metric="graph_breaks"):
            assert (row["mode"], row["value"]) == ("compile", 0)
        compiling, steps = store.rows(metric="compile_time"), store.rows(metric="step_time")
        assert len(compiling) == len(steps) == 2
        assert all(compiled["value"] > step["value"] for compiled, step in zip(compiling, steps, strict=True))


IN_A_FOLDER = """
import sys, torch
from torch._dynamo.utils import counters
from highway_bench.cell import Cell
from highway_bench.tasks.modes import compiler_caches
from highway_bench.tasks._step import StackStep

torch.set_num_threads(1)
cell = Cell(task="throughput", block="highway", family="dense", depth=1, width=8, nominal_width=8, batch_size=4,
            phase="forward", mode="compile")
with compiler_caches(sys.argv[1]):
    StackStep(cell).step()
print(counters["inductor"]["fxgraph_cache_miss"], counters["inductor"]["fxgraph_cache_hit"])
"""


@pytest.mark.slow
def test_what_one_process_compiled_the_next_one_reads(tmp_path: Path) -> None:
    found = [
        subprocess.run([sys.executable, "-c", IN_A_FOLDER, tmp_path], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert found == ["1 0\n", "0 1\n"]


def test_workers_never_mix_tasks_or_modes() -> None:
    from highway_bench.execution.job import Job

    cell = Cell(task="memory", block="plain", family="dense", depth=1, width=8, nominal_width=8)
    kinds = {
        WorkerKind.of(Job(task=task, keys=("k",), cells=(cell,), mode=mode, threads=1, alone=False, timeouts=(1.0,)))
        for task in ("memory", "throughput")
        for mode in ("eager", "compile", "compile+eager")
    }
    assert len(kinds) == 6

"""Compiled cells really run compiled: through inductor, in worker processes, and after the memory tracker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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

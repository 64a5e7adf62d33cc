"""What pytest-benchmark times: one step of every block in every family, grouped so that blocks stand side by side.

    nox -s step                                     # all of them, saved for this machine
    nox -s step -- benches/test_step.py             # without the benches of the tool itself
    nox -s step -- -k "dense and highway"           # some
    nox -s step -- --benchmark-compare              # against the last saved run of this machine

The workload is the one that ``highway-bench run throughput`` times; only the clock is pytest-benchmark's. The median
of a group's rows is what to compare. The groups are not interleaved, so for a ratio with an interval use the command
line.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from highway_bench.plan.plan import Plan
from highway_bench.plan.profiles import Profile, timing
from highway_bench.tasks import StepTask, tasks

STEPS = Profile(
    "steps",
    "every block and family, forward and backward, at one small depth",
    (timing(0.2, 5, phases=("forward-backward",)),),
)
CELLS = {f"{cell.family}-{cell.block}": cell for cell in Plan.of(STEPS).cells}


@pytest.mark.parametrize("name", CELLS)  # a name and not its cell, which pytest-benchmark could not save
def test_step(benchmark: BenchmarkFixture, name: str) -> None:
    cell = CELLS[name]
    benchmark.group = f"{cell.family}, depth {cell.depth}, {cell.phase}"
    task = tasks.get("throughput")
    assert isinstance(task, StepTask)
    work = task.prepare(cell)
    benchmark.extra_info |= {
        "block": cell.block,
        "family": cell.family,
        "depth": cell.depth,
        "width": cell.width,
        "items": work.items,
        "params": work.params,
        "device": cell.device,
    }
    benchmark.pedantic(work.step, teardown=work.restore, rounds=20, warmup_rounds=3)
    work.close()

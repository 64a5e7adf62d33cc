"""One step of every block in every family, timed by pytest-benchmark; the groups compare blocks.

    nox -s step                                     # all of them, saved for this machine
    nox -s step -- benches/test_step.py             # without the benches of the tool itself
    nox -s step -- -k "dense and highway"           # some
    nox -s step -- --benchmark-compare              # against the last saved run of this machine

The workload is the one that ``highway-bench run throughput`` times; only the clock is pytest-benchmark's. Compare the
medians of a group's rows. Blocks are timed one after the other, so use the command line for a ratio with an interval.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from highway_bench.plan.grid import timing
from highway_bench.plan.plan import Plan
from highway_bench.plan.profiles import Profile
from highway_bench.tasks import StepTask, tasks

STEPS = Profile(
    "steps",
    "every block and family, forward and backward, at one small depth",
    (timing(phases=("forward-backward",)),),
)
CELLS = {f"{cell.family}-{cell.block}": cell for cell in Plan.of(STEPS).cells}


@pytest.mark.parametrize("name", CELLS)  # a name, because pytest-benchmark cannot save a cell
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

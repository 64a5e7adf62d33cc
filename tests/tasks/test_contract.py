"""Contract of every registered task: what it declares."""

from typing import get_args

import pytest

from highway_bench.cell import MODES, Mode
from highway_bench.errors import BadInput
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from highway_bench.tasks import Measurement, StepTask, tasks
from highway_bench.tasks.modes import EXECUTION_MODES
from tests.combinations import TASKS

CELLS = {}
for cell in Plan.of("smoke", Selection(device="cpu")).cells:
    CELLS.setdefault(cell.task, cell)


@pytest.mark.parametrize("name", TASKS)
def test_metrics_have_a_unit_and_a_label(name):
    task = tasks.get(name)
    names = [metric.name for metric in task.metrics]
    assert len(set(names)) == len(names) > 0
    for metric in task.metrics:
        assert metric.unit
        assert metric.label
        assert metric.unit == "1" or not metric.percent
    with pytest.raises(ValueError, match="speed"):
        task.metric("speed")


def test_only_times_need_a_machine_and_nothing_beside_them():
    assert [name for name in TASKS if tasks.get(name).alone] == ["throughput"]
    assert [name for name in TASKS if tasks.get(name).meter] == ["memory", "throughput"]


@pytest.mark.parametrize("name", TASKS)
def test_what_a_cell_cannot_be_is_refused(name):
    task, cell = tasks.get(name), CELLS[name]
    task.check(cell)
    with pytest.raises(BadInput, match="stepz"):
        task.check(cell.but(recipe={**cell.recipe, "stepz": 3}))
    if isinstance(task, StepTask):
        with pytest.raises(BadInput, match="jit"):
            task.check(cell.but(mode="jit"))
        with pytest.raises(BadInput, match="phase"):
            task.check(cell.but(phase=None))


def test_every_mode_says_how_a_step_is_called():
    assert tuple(EXECUTION_MODES) == MODES == get_args(Mode)
    assert [name for name, mode in EXECUTION_MODES.items() if mode.compiles] == ["compile"]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_stored_as_none(number):
    result = Measurement(metric="loss", value=number, samples=[1.0, number], message="odd").finite()
    assert (result.value, result.samples, result.status) == (None, [1.0, None], "failed")
    assert result.message == f"odd; value is {number:g}; 1 of 2 samples are not finite"
    diverged = Measurement(metric="loss", value=number, status="diverged").finite()
    assert (diverged.value, diverged.status) == (None, "diverged")

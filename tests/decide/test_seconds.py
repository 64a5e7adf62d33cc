"""Equal seconds: which blocks are compared, and how many steps each may take."""

import json

import pandas as pd
import pytest

from highway_bench.errors import BadInput
from highway_bench.execution.runner import Summary
from highway_bench.measure.statistics import IntervalEstimate
from highway_bench.plan.plan import RunResult
from highway_bench.studies.decide.candidate import TrainingEnd
from highway_bench.studies.decide.language import DEEP, equal_seconds, step_ratios, timing_cells
from highway_bench.tasks import tasks
from tests.decide.conftest import trained
from tests.inline_engine import cell_of

LOSSES = {"keel": 0.9, "mhc": 0.901, "rezero": 0.95, "parallel": 0.96}


@pytest.fixture(scope="module")
def trainings(part):
    def ends(cell):
        noise = 1e-3 * (cell.seed * (3 + len(cell.block)) % 5)
        return TrainingEnd(LOSSES.get(cell.block, 1.0) + abs(cell.recipe["rate"] - 0.003) + noise, True)

    return trained(part, ends)


def ratio(value, width=0.01):
    return IntervalEstimate(value, value / (1 + width), value * (1 + width), 5)


RATIOS = {"keel": ratio(1.25), "mhc": ratio(2.0), "rezero": ratio(0.8), "parallel": ratio(0.9)}


def test_leaders_and_the_best_faster_block(part, trainings):
    chosen = equal_seconds(part, trainings, RATIOS)
    steps = {one.template.block: one.template.recipe["steps"] for one in chosen.candidates}
    assert steps == {"keel": 1_200, "mhc": 750, "rezero": 1_875}
    cells = chosen.pending({})
    assert {cell.depth for cell in cells} == {DEEP}
    assert sorted(cell.seed for cell in cells if cell.block == "keel") == [0, 1, 2, 3, 4]
    assert chosen.pending(dict.fromkeys(cells, TrainingEnd(1.0, True))) == []


@pytest.mark.parametrize("keel", [None, ratio(1.25, 0.06)], ids=["not timed", "wide"])
def test_a_leader_whose_ratio_is_not_known_has_no_steps(part, trainings, keel):
    timed = {name: one for name, one in (RATIOS | {"keel": keel}).items() if one is not None}
    with pytest.raises(BadInput, match="keel"):
        equal_seconds(part, trainings, timed)


def test_all_steps_are_timed_in_turn(part, trainings):
    cells = timing_cells(part, trainings)
    assert set(cells) == {one.template.block for one in part.candidates}
    throughput = tasks.get("throughput")
    assert len({throughput.group(cell) for cell in cells.values()}) == 1
    for cell in cells.values():
        throughput.check(cell)


def test_ratios_come_from_common_rounds_of_steps_that_were_timed():
    cells = {name: cell_of("throughput", block=name) for name in ("pre-norm", "keel", "mhc", "rezero")}
    rows = pd.DataFrame(
        [
            {
                "digest": name,
                "metric": "step_time",
                "axis": "",
                "samples": json.dumps(samples),
                "paired": json.dumps({"process": [0, 0, 1, 1], "wall": samples, "plain": plain}),
            }
            for name, factor, plain in (("pre-norm", 1.0, [1.0] * 4), ("keel", 1.5, [1.0] * 4), ("mhc", 2.0, [3.0] * 4))
            for samples in [[factor * base for base in (1.0, 2.0, 1.1, 2.2)]]
        ]
    )
    rows.loc[len(rows)] = {"digest": "rezero", "metric": "step_time", "axis": "", "samples": None, "paired": None}
    summary = Summary("run", {}, 0, 0, 0.0, {cell: name for name, cell in cells.items()})
    found = step_ratios(RunResult(rows, {}, summary, [], []), cells)
    assert set(found) == {"keel"}
    assert found["keel"].value == pytest.approx(1.5)

"""Costs: which cells are measured, and that the answer's table finds them next to the trainings."""

from dataclasses import replace

from highway_bench.frames.results import open_results
from highway_bench.measure.roofline import Roofline
from highway_bench.report.choice.table import wide_table
from highway_bench.studies.decide.candidate import Candidate
from highway_bench.studies.decide.part import Protocol
from highway_bench.studies.decide.protocol import CostProtocol, cost_cells, costs, get_part
from highway_bench.studies.decide.rounds import Trainer
from highway_bench.tasks import tasks
from tests.decide.conftest import TEMPLATE
from tests.formula_engine import FormulaEngine
from tests.inline_engine import InlineEngine


def size_of(cell):
    start = (cell.family, cell.family_options, cell.block, cell.start)
    return str((*start, cell.width, cell.nominal_width, cell.batch_size))


def test_every_start_is_measured_once_a_depth_at_the_sizes_of_its_trainings():
    cells = costs().pending({})
    assert len(set(cells)) == len(cells)
    trained = {
        (depth, size_of(one.template))
        for name in ("dense", "vision", "language")
        for one in get_part(name).candidates
        for depth in one.depths
    }
    for name in ("throughput", "memory"):
        own = [cell for cell in cells if cell.task == name]
        assert sorted((one.depth, size_of(one)) for one in own) == sorted(trained)
        for one in own:
            tasks.get(name).check(one)
    throughput = tasks.get("throughput")
    groups = {throughput.group(cell) for cell in cells if cell.task == "throughput"}
    assert len(groups) == 6 + 4 + 4 + 4 + 3 + 2  # all blocks of a family and depth are timed in turn
    assert {cell.family for cell in costs().only(["conv"]).pending({})} == {"conv"}


def test_the_answer_has_the_costs_of_what_was_trained(tmp_path, monkeypatch):
    timing = {"seconds": 0, "samples": 2, "processes": 1, "precision": 1.0, "limit": 0}
    monkeypatch.setattr("highway_bench.studies.decide.protocol.TIMING", timing)
    monkeypatch.setattr("highway_bench.tasks.throughput.measure_roofline", lambda *at: Roofline(*at, 1e9, 1e9, 1e9))
    first = Candidate(TEMPLATE, (1, 2), (0.3, 0.1, 0.03))
    both = tuple(replace(first, template=TEMPLATE.but(block=block)) for block in ("plain", "pre-norm"))
    store = tmp_path / "s.sqlite"
    Trainer(store, FormulaEngine({"plain": 0.2, "pre-norm": 0.1})).train(Protocol("tiny", both).pending)
    without = wide_table(open_results(store))
    assert len(without)
    assert without["bytes"].isna().all()
    part, inline = CostProtocol("costs", both), InlineEngine(tmp_path)
    ends = Trainer(store, inline).train(part.pending)
    assert set(ends) == {cell for one in both for cell in cost_cells(one)} == set(inline.cells)
    assert Trainer(store, again := InlineEngine(tmp_path)).train(part.pending) == ends
    assert again.cells == []
    table = wide_table(open_results(store))
    assert set(table["depth"]) == {1, 2}
    assert table["bytes"].gt(0).all()

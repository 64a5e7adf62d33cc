"""Estimates against what is measured; and parts of equal cost, in which what belongs together is together."""

import pytest

from highway_bench.errors import BadInput
from highway_bench.execution.progress import TimeLeft
from highway_bench.execution.schedule import ScheduledCell
from highway_bench.families import make_family
from highway_bench.plan import estimate as estimating
from highway_bench.plan.estimate import Estimate, costliest, predicted_by, shard, units
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import positions_of
from highway_bench.tasks.predicted_costs import predicted_bytes
from tests.inline_engine import cell_of

CELL = cell_of("memory", block="highway", depth=6, width=32, nominal_width=32, batch_size=16, phase="train-step")


def cell_bytes(cell):
    return tasks.get(cell.task).cost(cell).bytes


@pytest.mark.parametrize("family", ["dense", "dense-pair", "conv", "bilstm", "attention", "transformer"])
def test_bytes_are_near_the_peak(family):
    cell = CELL.but(family=family)
    (outcome,) = tasks.get("memory").measure([cell])
    peak = next(one.value for one in outcome.measurements if one.metric == "peak")
    assert 1 / 3 < cell_bytes(cell) / peak < 3


def test_forward_keeps_one_layer():
    assert cell_bytes(CELL.but(phase="forward")) < cell_bytes(CELL) / 2


def test_networks_that_train_as_one_count_as_many_times():
    trained = CELL.but(task="trainability", phase=None, dataset="digits")
    alone = cell_bytes(trained)
    assert cell_bytes(trained.but(recipe={"together": 4})) == 4 * alone
    assert cell_bytes(trained.but(recipe={"together": 1_000})) == 16 * alone
    conv = trained.but(family="conv")
    assert cell_bytes(conv.but(recipe={"together": 4})) == cell_bytes(conv)


@pytest.mark.parametrize(
    ("task", "device", "threads", "lanes"),
    [
        ("trainability", "cpu", 1, 4),
        ("trainability", "cpu", 2, 2),
        ("trainability", "cpu", 8, 1),
        ("trainability", "cuda", 1, 1),
        ("throughput", "cpu", 1, 1),
    ],
)
def test_parallel_runs_divide_the_remaining_time(task, device, threads, lanes):
    cell = CELL.but(task=task, device=device, threads=threads, recipe={"steps": 10})
    one = tasks.get(task)
    items = [ScheduledCell(cell.but(seed=seed), one, (), ran=cell.but(seed=seed)) for seed in range(8)]
    assert TimeLeft(items, workers=4).seconds == pytest.approx(8 * one.cost(cell).seconds / lanes)


def test_positions_are_those_of_the_data():
    conv, dense, lstm = make_family("conv"), make_family("dense"), make_family("bilstm")
    assert positions_of(conv, CELL.but(dataset="mnist-5k")) == 28 * 28
    assert positions_of(dense, CELL.but(dataset="mnist-5k")) == 1
    assert positions_of(lstm, CELL.but(dataset="mnist-5k")) == 28
    assert positions_of(lstm, CELL.but(dataset="adding", seq_len=40)) == 40
    assert positions_of(lstm, CELL.but(seq_len=40)) == 40


def test_the_costliest_cells_correct_the_closed_forms(monkeypatch):
    task = tasks.get("trainability")
    cells = [CELL.but(task=task.name, dataset="digits", depth=depth, recipe={"steps": 10}) for depth in (5, 50)]
    items = [ScheduledCell(cell, task, (), ran=cell) for cell in cells]
    assert [item.ran.depth for item in costliest(items, lambda item: item.cost.seconds)] == [50]
    one = tasks.get("memory")
    timed = ScheduledCell(CELL, one, (), ran=CELL)
    monkeypatch.setattr(estimating, "predicted_seconds", lambda cell: 3.0 * task.cost(cell).seconds)
    whole = Estimate(tuple(cells), [*items, timed], workers=1)
    assert whole.seconds == pytest.approx(3 * sum(item.cost.seconds for item in items) + one.cost(CELL).seconds)

    def fails(cell):
        raise ValueError("no network")

    monkeypatch.setattr(estimating, "predicted_seconds", fails)
    other = Estimate(tuple(cells), items, workers=1)
    assert other.seconds == pytest.approx(sum(item.cost.seconds for item in items))


def test_the_largest_cell_is_predicted_if_it_may_take_more_than_a_process(monkeypatch):
    deep = CELL.but(depth=40)
    items = [ScheduledCell(cell, tasks.get("memory"), (), ran=cell) for cell in (CELL, deep)]
    assert Estimate((CELL, deep), items, workers=1).bytes == cell_bytes(deep)
    monkeypatch.setattr(estimating, "PROCESS_BYTES", cell_bytes(deep) - 1)
    assert Estimate((CELL, deep), items, workers=1).bytes == predicted_bytes(deep) != cell_bytes(deep)


def test_no_network_runs_for_an_estimate_that_memory_may_not_hold(monkeypatch):
    item = ScheduledCell(CELL, tasks.get("memory"), (), ran=CELL)
    assert predicted_by(predicted_bytes, item) is not None
    monkeypatch.setattr(estimating, "usable_bytes", lambda device: 1000)
    assert predicted_by(predicted_bytes, item) is None


SELECTION = Selection.of(block=["plain", "highway", "residual"], family=["dense", "mlp"], device="cpu")


@pytest.fixture(scope="module")
def plan():
    return Plan.of("standard", SELECTION)


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_every_cell_is_in_one_part_with_all_that_it_needs(plan, parts):
    chosen = [shard(plan.needs, f"{number}/{parts}") for number in range(1, parts + 1)]
    assert sum(map(len, chosen)) == len(plan.needs)
    assert set().union(*chosen) == set(plan.needs)
    groups = {}
    for number, cells in enumerate(chosen):
        for cell in cells:
            assert set(plan.needs[cell]) <= cells
            groups.setdefault((cell.task, tasks.get(cell.task).group(cell), cell.threads), set()).add(number)
    assert all(len(numbers) == 1 for numbers in groups.values())


def test_parts_are_of_equal_cost(plan):
    """As far as the largest unit allows: no part costs more than an equal share and that unit."""
    costs = {cell: tasks.get(cell.task).cost(cell).seconds for cell in plan.needs}
    largest = max(sum(costs[cell] for cell in unit) for unit in units(plan.needs))
    for parts in (2, 4):
        loads = [sum(costs[cell] for cell in shard(plan.needs, f"{one}/{parts}")) for one in range(1, parts + 1)]
        assert max(loads) <= sum(costs.values()) / parts + largest
        assert min(loads) > 0


def test_parts_follow_from_the_command_alone(plan):
    assert Plan.of("standard", SELECTION).shard("2/3").cells == plan.shard("2/3").cells
    assert [cell for cell in plan.cells if cell in set(plan.shard("2/3").cells)] == list(plan.shard("2/3").cells)


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "1/3/5", "²/3"])
def test_a_part_that_is_none(plan, part):
    with pytest.raises(BadInput, match="write it as 3/8"):
        plan.shard(part)

"""Shards: every cell in one part, what belongs together in the same, and parts of equal cost."""

from __future__ import annotations

import pytest

from highway_bench.errors import BadInput
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from highway_bench.plan.shard import shard, units
from highway_bench.tasks import tasks

SELECTION = Selection.of(block=["plain", "highway", "residual"], family=["dense", "mlp"], device="cpu")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan.of("standard", SELECTION)


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_every_cell_is_in_one_part_with_all_that_it_needs(plan: Plan, parts: int) -> None:
    chosen = [shard(plan.needs, f"{number}/{parts}") for number in range(1, parts + 1)]
    assert sum(map(len, chosen)) == len(plan.needs)
    assert set().union(*chosen) == set(plan.needs)
    groups: dict[object, set[int]] = {}
    for number, cells in enumerate(chosen):
        for cell in cells:
            assert set(plan.needs[cell]) <= cells
            groups.setdefault((cell.task, tasks.get(cell.task).group(cell), cell.threads), set()).add(number)
    assert all(len(numbers) == 1 for numbers in groups.values())


def test_parts_are_of_equal_cost(plan: Plan) -> None:
    """As far as the largest unit allows: no part costs more than an equal share and that unit."""
    costs = {cell: tasks.get(cell.task).cost(cell).seconds for cell in plan.needs}
    largest = max(sum(costs[cell] for cell in unit) for unit in units(plan.needs))
    for parts in (2, 4):
        loads = [sum(costs[cell] for cell in shard(plan.needs, f"{one}/{parts}")) for one in range(1, parts + 1)]
        assert max(loads) <= sum(costs.values()) / parts + largest
        assert min(loads) > 0


def test_parts_follow_from_the_command_alone(plan: Plan) -> None:
    assert Plan.of("standard", SELECTION).shard("2/3").cells == plan.shard("2/3").cells
    assert [cell for cell in plan.cells if cell in set(plan.shard("2/3").cells)] == list(plan.shard("2/3").cells)


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "a/b", "1/3/5", "²/3"])
def test_a_part_that_is_none(plan: Plan, part: str) -> None:
    with pytest.raises(BadInput, match="write it as 3/8"):
        plan.shard(part)

"""The ladder: a depth waits for the next shallower one, and is skipped where that trained with no seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.schedule import Schedule, with_needs
from highway_bench.results.schema import Status, row
from highway_bench.results.store import Store
from highway_bench.tasks import Skip, tasks
from highway_bench.tasks.training_cells import rung_below

TASK = tasks.get("trainability")


def rung(depth: int, seed: int = 0, *, rates: tuple[float, ...] = (0.01,), steps: int = 60) -> Cell:
    recipe = {
        "optimiser": "adam",
        "steps": steps,
        "threshold": 0.5,
        "rate": "tuned",
        "rates": list(rates),
        "ladder": {"depths": [1, 2, 4], "seeds": 2, "rates": list(rates)},
    }
    return Cell(
        task="trainability",
        block="plain",
        family="dense",
        depth=depth,
        width=24,
        nominal_width=24,
        batch_size=64,
        dataset="digits",
        recipe=recipe,
        seed=seed,
    )


def test_a_rung_waits_for_every_seed_of_the_next_shallower() -> None:
    assert rung_below(rung(1)) == ()
    assert set(rung_below(rung(4))) == {rung(2, seed) for seed in range(2)}


def test_trials_wait_as_well() -> None:
    (trial,) = [cell for cell in TASK.needs(rung(4)) if cell.trial is not None]
    assert set(TASK.needs(trial)) == {rung(2, seed) for seed in range(2)}


STALLED, TRAINED, SKIPPED = {"success": 0.0}, {"success": 1.0}, {"success": None}


@pytest.mark.parametrize(
    ("outcomes", "raises"),
    [
        ([STALLED, STALLED], Skip),
        ([SKIPPED, SKIPPED], Skip),
        ([{}, {}], Skip),
        ([STALLED, TRAINED], None),
        ([None, TRAINED], None),
        ([None, STALLED], BadInput),
        ([None, None], BadInput),
    ],
)
def test_one_seed_that_trained_is_enough(
    outcomes: list[dict[str, float | None] | None], raises: type[Exception] | None
) -> None:
    """A seed that failed to finish (``None``) may have trained, so the rungs above have no verdict."""
    trial = next(cell for cell in TASK.needs(rung(4)) if cell.trial is not None)
    result = {cell: end for cell, end in zip(rung_below(trial), outcomes, strict=True) if end is not None}
    if raises is None:
        assert TASK.resolve(trial, result) == trial
    else:
        with pytest.raises(raises, match="depth 2"):
            TASK.resolve(trial, result)


def ended(store: Store, cells: list[Cell], statuses: dict[int, Status]) -> dict[int, set[Status]]:
    """Statuses of the cells of each depth, in a run whose measured cells have ``statuses``; only they are measured
    again."""
    schedule = Schedule(store)
    schedule.add(with_needs(cells))
    while batch := schedule.ready():
        for item in batch:
            item.status, message = item.refused or (statuses[item.cell.depth], None)
            success = {Status.OK: 1.0, Status.STALLED: 0.0}.get(item.status)
            columns = {"digest": item.digest, "status": item.status, "message": message, "value": success}
            store.put(item.digest, [row(**columns, metric=metric) for metric in ("success", "final_loss")])
    return {depth: {item.status for item in schedule.items.values() if item.cell.depth == depth} for depth in (1, 2, 4)}


def test_a_rung_whose_lower_one_failed_is_tried_again(tmp_path: Path) -> None:
    cells = [rung(depth, seed) for depth in (1, 2, 4) for seed in range(2)]
    with Store(tmp_path / "store.sqlite") as store:
        result = ended(store, cells, {1: Status.OK, 2: Status.TIMEOUT})
        assert result[1] == {Status.OK}
        assert result[2] == {Status.TIMEOUT, Status.FAILED}  # its trial, so its seeds
        assert result[4] == {Status.FAILED}
        result = ended(store, cells, {2: Status.OK, 4: Status.STALLED})
        assert result[4] == {Status.STALLED}


def test_a_rung_that_was_skipped_is_measured_once_the_lower_one_trains(tmp_path: Path) -> None:
    cells = [rung(depth, seed) for depth in (1, 2, 4) for seed in range(2)]
    with Store(tmp_path / "store.sqlite") as store:
        result = ended(store, cells, {1: Status.OK, 2: Status.STALLED})
        assert result[4] == {Status.SKIPPED}
        schedule = Schedule(store)
        schedule.add(with_needs(cells))
        assert schedule.ready() == []  # for as long as the reason holds, it is done
        for item in schedule.items.values():
            if item.cell.depth == 2:
                columns = {"digest": item.digest, "status": "ok", "value": 1.0}
                store.put(item.digest, [row(**columns, metric=metric) for metric in ("success", "final_loss")])
        result = ended(store, cells, {4: Status.OK})
        assert result[4] == {Status.OK}


def test_a_ladder_of_listed_seeds_at_one_rate() -> None:
    cell = rung(4, seed=7)
    cell = cell.but(recipe={**cell.recipe, "rate": 0.1, "ladder": {"depths": [2, 4], "seeds": [5, 7]}})
    assert rung_below(cell) == (cell.but(depth=2, seed=5), cell.but(depth=2, seed=7))

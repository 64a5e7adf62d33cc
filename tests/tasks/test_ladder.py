"""The ladder: a rung waits for the one below, and is skipped where that trained at no seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.results.schema import Status
from highway_bench.results.store import Store
from highway_bench.run.runner import run_cells
from highway_bench.tasks import Skip, tasks
from highway_bench.tasks._ladder import rung_below

TASK = tasks.get("trainability")


def rung(depth: int, seed: int = 0, *, rates: tuple[float, ...] = (0.01,), steps: int = 60) -> Cell:
    recipe = {"optimiser": "adam", "steps": steps, "threshold": 0.5, "rate": "tuned", "rates": list(rates),
              "ladder": {"depths": [1, 2, 4], "seeds": 2, "rates": list(rates)}}
    return Cell(task="trainability", block="plain", family="dense", depth=depth, width=24, nominal_width=24,
                batch_size=64, dataset="digits", recipe=recipe, seed=seed)


def test_a_rung_waits_for_every_seed_of_the_next_shallower() -> None:
    assert rung_below(rung(1)) == ()
    assert set(rung_below(rung(4))) == {rung(2, seed) for seed in range(2)}


def test_trials_wait_as_well() -> None:
    (trial,) = [cell for cell in TASK.needs(rung(4)) if cell.trial is not None]
    assert set(TASK.needs(trial)) == {rung(2, seed) for seed in range(2)}


@pytest.mark.parametrize(("successes", "skips"), [((0.0, 0.0), True), ((None, None), True), ((0.0, 1.0), False)])
def test_one_seed_that_trained_is_enough(successes: tuple[float | None, ...], skips: bool) -> None:
    trial = next(cell for cell in TASK.needs(rung(4)) if cell.trial is not None)
    found = {cell: {"success": value} for cell, value in zip(rung_below(trial), successes, strict=True)}
    if skips:
        with pytest.raises(Skip, match="plain trained at no seed of depth 2"):
            TASK.resolve(trial, found)
    else:
        assert TASK.resolve(trial, found) == trial


@pytest.mark.slow
def test_in_a_run_nothing_deeper_than_the_first_failing_rung_is_trained(tmp_path: Path) -> None:
    def statuses(rate: float) -> Callable[[int], set[Status]]:
        cells = [rung(depth, seed, rates=(rate,)) for depth in (1, 2, 4) for seed in range(2)]
        with Store(tmp_path / f"{rate}.sqlite") as store:
            found = run_cells(cells, store, workers=1)
            ended = store.digests()
        return lambda depth: {ended[found.digests[cell]] for cell in cells if cell.depth == depth}

    hopeless, good = statuses(1e-7), statuses(0.01)
    assert [hopeless(depth) for depth in (1, 2, 4)] == [{Status.STALLED}, {Status.SKIPPED}, {Status.SKIPPED}]
    assert [good(depth) for depth in (1, 2, 4)] == [{Status.OK}] * 3

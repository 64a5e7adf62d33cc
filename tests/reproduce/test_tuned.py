"""Reproductions with learning rates of their own: which runs follow from which, and what counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.decide.candidate import TUNING_SEEDS
from highway_bench.execution.job import Began, Ended, Job
from highway_bench.reproduce import inits
from highway_bench.reproduce.arms import TunedReproduction
from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.request import Request
from highway_bench.reproduce.running import cost, reproduce
from tests.comparison.conftest import FormulaEngine
from tests.reproduce.conftest import followed, rows_of

INITS = reproductions.get("inits")
assert isinstance(INITS, TunedReproduction)
REQUEST = Request(seeds=3, device="cpu")
PAIRS = [pair for pair in inits.PAIRS if pair[1] == "default"]
ARMS = len(PAIRS)


@pytest.fixture(autouse=True)
def few_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inits, "PAIRS", PAIRS)


def test_the_runs_of_a_reproduction_follow_from_each_other(tmp_path: Path) -> None:
    """The rate 0.1, the lowest of the first three, is the best, so 0.03 is tried too."""
    engine = FormulaEngine({"highway": 0.1, "plain": 0.2})
    first = reproduce("inits", REQUEST, store=tmp_path / "s.sqlite", out=tmp_path, engine=engine)
    assert len(engine.cells) == len(set(engine.cells)) == ARMS * (4 + 2 * 2 + 3)
    assert first.summary.measured == sum(first.summary.counts.values()) == len(engine.cells)
    assert first.conclusion.incomplete == ""
    again = reproduce("inits", REQUEST, store=tmp_path / "s.sqlite", engine=engine)
    assert (again.summary.measured, again.summary.stored) == (0, len(engine.cells))
    assert again.conclusion.findings == first.conclusion.findings


def test_an_interrupted_reproduction_has_no_verdict_and_goes_on(tmp_path: Path) -> None:
    fails = FormulaEngine({"highway": 0.1, "plain": 0.2}, fails="plain")
    result = reproduce("inits", REQUEST, store=tmp_path / "s.sqlite", engine=fails)
    assert f"{ARMS // 2 * 3} of " in result.conclusion.incomplete  # nothing follows from runs that failed
    later = reproduce("inits", REQUEST, store=tmp_path / "s.sqlite", engine=FormulaEngine({"plain": 0.2}))
    assert later.conclusion.incomplete == ""


def test_the_estimate_is_of_what_is_usually_left(tmp_path: Path) -> None:
    """Without results, that the middle of the first rates is the best; after them, what follows from them."""
    store = tmp_path / "s.sqlite"
    usual = ARMS * (3 + 2 * 2 + 3)
    first = cost("inits", REQUEST, store=store)
    assert (len(first.cells), len(first.left)) == (usual, usual)
    reproduce("inits", REQUEST, store=store, engine=FormulaEngine({"highway": 0.1, "plain": 0.2}))
    after = cost("inits", REQUEST, store=store)
    assert (len(after.cells), len(after.left)) == (ARMS * (4 + 2 * 2 + 3), 0)


def test_cells_that_are_named_are_measured_again_in_their_round(tmp_path: Path) -> None:
    """The name is that of cells of the last round, and of none of the first."""
    store, engine = tmp_path / "s.sqlite", FormulaEngine({"highway": 0.1, "plain": 0.2})
    reproduce("inits", REQUEST, store=store, engine=engine)
    done, first = len(engine.cells), INITS.version.seen
    reproduce("inits", REQUEST, store=store, engine=engine, rerun=f"seed {first}")
    assert {cell.seed for cell in engine.cells[done:]} == {first}
    assert len(engine.cells) == done + ARMS


def test_a_run_that_is_interrupted_between_rounds_goes_on(tmp_path: Path) -> None:
    class Interrupted(FormulaEngine):
        def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
            if len(self.cells) > ARMS * 3:
                raise KeyboardInterrupt
            return super().run(jobs)

    store = tmp_path / "s.sqlite"
    with pytest.raises(KeyboardInterrupt):
        reproduce("inits", REQUEST, store=store, engine=Interrupted({"highway": 0.1, "plain": 0.2}))
    rest = FormulaEngine({"highway": 0.1, "plain": 0.2})
    assert reproduce("inits", REQUEST, store=store, engine=rest).conclusion.incomplete == ""
    assert len(rest.cells) == ARMS * (4 + 2 * 2 + 3) - ARMS * 4


def test_seeds_that_tune_do_not_count() -> None:
    def metrics(cell: Cell) -> dict[str, float]:
        return {"final_loss": 0.1, "success": 1.0, "rate": 0.1}

    values = followed(INITS, REQUEST, metrics)
    assert {cell.seed for cell in values if cell.trial is not None} == set(TUNING_SEEDS)
    for runs, tried in INITS.tuned_runs(rows_of(values), REQUEST).values():
        assert set(runs) == set(INITS.seeds(REQUEST, 0))
        assert tried == [0.03, 0.1, 0.3, 1.0]

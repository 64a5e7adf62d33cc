"""Reproductions with learning rates of their own: which runs follow from which, and what counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.decide.candidate import TUNING_SEEDS
from highway_bench.reproduce._tuned import TunedReproduction
from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.request import Request
from highway_bench.reproduce.running import reproduce
from tests.comparison.conftest import FormulaEngine
from tests.reproduce.conftest import followed, rows_of

INITS = reproductions.get("inits")
REQUEST = Request(seeds=3, device="cpu")
ARMS = 32


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


@pytest.mark.parametrize(
    "study", [one for name in reproductions if isinstance(one := reproductions.get(name), TunedReproduction)]
)
def test_the_usual_runs_are_those_of_arms_whose_middle_rate_is_the_best(study: TunedReproduction[Any]) -> None:
    request = Request(seeds=2, device="cpu")
    arms = study.arms(request).values()
    usual = study.usual_cells(request)
    assert len(usual) == len(arms) * (3 + 2 * 2 + 2) + len(study.others(request))
    assert {one.seed for one in usual if one.trial is None} >= set(next(iter(arms)).fresh)
    assert set(study.cells(request)) <= set(usual)


def test_seeds_that_tune_do_not_count() -> None:
    def metrics(cell: Cell) -> dict[str, float]:
        return {"final_loss": 0.1, "success": 1.0, "rate": 0.1}

    values = followed(INITS, REQUEST, metrics)
    assert {cell.seed for cell in values if cell.trial is not None} == set(TUNING_SEEDS)
    for runs, tried in INITS.tuned_runs(rows_of(values), REQUEST).values():
        assert set(runs) == set(INITS.seeds(REQUEST, 0))
        assert tried == [0.03, 0.1, 0.3, 1.0]

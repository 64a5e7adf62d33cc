"""Arms: their runs by seed, the ratio of losses, an untrained reference, and which runs follow from which."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import pytest

from highway_bench.execution.job import Began, Ended, Job
from highway_bench.studies.decide.candidate import TUNING_SEEDS
from highway_bench.studies.reproduce import inits
from highway_bench.studies.reproduce.arms import Trained, left_chance, ratio, record_of, runs_of, untrained
from highway_bench.studies.reproduce.base import measured, reproductions
from highway_bench.studies.reproduce.quantities import Region, scatter_of
from highway_bench.studies.reproduce.request import Request
from highway_bench.studies.reproduce.running import cost, reproduce
from tests.formula_engine import FormulaEngine
from tests.inline_engine import cell_of
from tests.reproduce.conftest import followed, rows_of

ONE = cell_of("trainability", depth=2)
BASE = {0: 0.1, 1: 0.2, 2: 0.4, 3: 0.8}
GONE = dict.fromkeys(BASE, math.nan)


def runs(losses, **metrics):
    """Runs by seed; further ``metrics`` in the order of the losses."""
    values = {
        ONE.but(seed=seed): {"final_loss": loss} | {name: own[number] for name, own in metrics.items()}
        for number, (seed, loss) in enumerate(losses.items())
    }
    return runs_of(values, {("plain",): values}, ["arm"])


def test_the_ratio_is_paired_by_seed():
    double = {seed: 2 * loss * (1 + 0.02 * (-1) ** seed) for seed, loss in BASE.items()}
    one = ratio("loss", runs(double), runs(BASE), 0.95)
    assert one.value == pytest.approx(2.0, rel=0.01)
    assert one.high / one.low < 1.2  # although the losses of the seeds span a decade
    assert math.isnan(ratio("", runs({0: 1.0, 9: 1.0}), runs(BASE), 0.95).low)


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        (GONE, BASE, math.inf),
        (BASE, GONE, 0.0),
        (GONE, GONE, math.nan),
        (BASE | {0: math.nan}, BASE, math.nan),
        (GONE, {}, math.nan),
        (BASE | {0: 0.0}, BASE, math.nan),
        (BASE, BASE | {0: 0.0}, math.nan),
        ({}, {}, math.nan),
    ],
)
def test_runs_that_diverged_are_not_left_out(a, b, value):
    one = ratio("loss", runs(a), runs(b), 0.95)
    assert (one.low, one.high) == pytest.approx((value, value), nan_ok=True)
    assert math.isnan(scatter_of(one, 0.95))  # so that the power of such a finding is unknown


def test_a_record_of_runs():
    accuracies, params = [0.8, 0.9, math.nan], [7.0, math.nan, math.nan]
    result = record_of(runs({0: 0.1, 1: 0.4, 2: math.nan}, test_accuracy=accuracies, params=params))
    assert (result["n"], result["diverged"], result["params"]) == (3, 1, 7.0)
    assert (result["loss"], result["accuracy"]) == (pytest.approx(0.2), pytest.approx(0.85))
    assert math.isnan(result["rate"])
    assert math.isnan(record_of(runs({}))["loss"])
    assert math.isnan(record_of(runs({0: 0.0, 1: 0.1}))["loss"])


def test_cells_that_differ_in_any_field_have_their_own_metrics():
    cells = [ONE, ONE.but(device="cuda"), ONE.but(match="width"), ONE.but(nominal_width=9), ONE.but(seq_len=5)]
    losses = {cell: {"final_loss": 0.1 * number} for number, cell in enumerate(cells, start=1)}
    assert measured(rows_of(losses), [*cells, ONE.but(seed=1)]) == {**losses, ONE.but(seed=1): {}}


def test_an_untrained_reference():
    trained = Trained("test_accuracy", Region(least=0.8, closed=True), "an accuracy")
    four = runs(BASE, test_accuracy=[0.9, 0.8, 0.5, math.nan])
    assert untrained("identity", four, trained) == ""
    assert "identity is untrained" in untrained("identity", four[1:], trained)
    assert untrained("identity", four[:0], trained)
    assert not left_chance("mnist-5k").by(math.inf)


INITS = reproductions.get("inits")
REQUEST = Request(seeds=3, device="cpu")
PAIRS = [pair for pair in inits.PAIRS if pair[1] == "default"]
ARMS = len(PAIRS)
RUNS = ARMS * (4 + 2 * 2 + 3)
BEST = {"highway": 0.1, "plain": 0.2}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The path of a store, for a study of few arms."""
    monkeypatch.setattr(inits, "PAIRS", PAIRS)
    return tmp_path / "s.sqlite"


def test_the_runs_of_a_reproduction_follow_from_each_other(store):
    """The rate 0.1, the lowest of the first three, is the best, so 0.03 is tried too."""
    engine = FormulaEngine(BEST)
    first = reproduce("inits", REQUEST, store=store, out=store.parent, engine=engine)
    assert len(engine.cells) == len(set(engine.cells)) == RUNS
    assert first.summary.measured == sum(first.summary.counts.values()) == len(engine.cells)
    assert first.conclusion.incomplete == ""
    again = reproduce("inits", REQUEST, store=store, engine=engine)
    assert (again.summary.measured, again.summary.stored) == (0, len(engine.cells))
    assert again.conclusion.findings == first.conclusion.findings


def test_an_interrupted_reproduction_has_no_verdict_and_goes_on(store):
    result = reproduce("inits", REQUEST, store=store, engine=FormulaEngine(BEST, fails="plain"))
    assert f"{ARMS // 2 * 3} of " in result.conclusion.incomplete  # nothing follows from runs that failed
    assert reproduce("inits", REQUEST, store=store, engine=FormulaEngine(BEST)).conclusion.incomplete == ""


def test_the_estimate_is_of_what_is_usually_left(store):
    """Without results, that the middle of the first rates is the best; after them, what follows from them."""
    usual = ARMS * (3 + 2 * 2 + 3)
    first = cost("inits", REQUEST, store=store)
    assert (len(first.cells), len(first.left)) == (usual, usual)
    reproduce("inits", REQUEST, store=store, engine=FormulaEngine(BEST))
    after = cost("inits", REQUEST, store=store)
    assert (len(after.cells), len(after.left)) == (RUNS, 0)


def test_cells_that_are_named_are_measured_again_in_their_round(store):
    """The name is that of cells of the last round, and of none of the first."""
    engine = FormulaEngine(BEST)
    reproduce("inits", REQUEST, store=store, engine=engine)
    done, first = len(engine.cells), INITS.version.seen
    reproduce("inits", REQUEST, store=store, engine=engine, rerun=f"seed {first}")
    assert {cell.seed for cell in engine.cells[done:]} == {first}
    assert len(engine.cells) == done + ARMS


def test_a_run_that_is_interrupted_between_rounds_goes_on(store):
    class Interrupted(FormulaEngine):
        def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
            if len(self.cells) > ARMS * 3:
                raise KeyboardInterrupt
            return super().run(jobs)

    with pytest.raises(KeyboardInterrupt):
        reproduce("inits", REQUEST, store=store, engine=Interrupted(BEST))
    rest = FormulaEngine(BEST)
    assert reproduce("inits", REQUEST, store=store, engine=rest).conclusion.incomplete == ""
    assert len(rest.cells) == RUNS - ARMS * 4


@pytest.mark.usefixtures("store")
def test_seeds_that_tune_do_not_count():
    values = followed(INITS, REQUEST, lambda cell: {"final_loss": 0.1, "success": 1.0, "rate": 0.03})
    assert {cell.seed for cell in values if cell.trial is not None} == set(TUNING_SEEDS)
    runs = INITS.runs(rows_of(values), REQUEST)
    assert {tuple(own["seed"]) for _, own in runs.groupby(list(inits.Inits.by))} == {tuple(INITS.seeds(REQUEST))}
    assert set(runs["edge"]) == {"lowest"}  # of 0.03, 0.1, 0.3 and 1

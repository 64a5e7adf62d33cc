"""Trainability: the rule of success, what a run that fails looks like, and how the rate is tuned."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.data import Split
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.matching import mismatch
from highway_bench.results.schema import Status
from highway_bench.tasks import Measurement, Skip, tasks
from highway_bench.tasks.trainability import TrainingWork, curve
from highway_bench.tasks.training_cells import SEARCH_SEED

MakeCell = Callable[..., Cell]
TASK = tasks.get("trainability")
ADAM = {"optimiser": "adam", "rate": 0.01, "decay": 1.0}


def run(one: Cell) -> list[Measurement]:
    work = TASK.prepare(one)
    return list(TASK.measurements(work, one))


def scalars(measurements: list[Measurement]) -> dict[str, float | None]:
    return {measurement.metric: measurement.value for measurement in measurements if not measurement.axis}


@pytest.fixture
def digits(cell: MakeCell) -> Callable[..., Cell]:
    def make(block: str = "highway", **changes: Any) -> Cell:
        defaults: dict[str, Any] = {"width": 16, "batch_size": 50, "dataset": "digits", "steps": 20}
        return cell("trainability", block, **{**defaults, **ADAM, **changes})

    return make


class ToldLosses:
    """A substitute for a training run that has these losses."""

    def __init__(self, losses: list[float], steps: int | None = None) -> None:
        self.recipe = SimpleNamespace(steps=steps or len(losses), rate=0.1)
        self.losses = losses
        self.times = [0.5 * (step + 1) for step in range(len(losses))]
        self.target_kind, self.own_loss = "class", None
        self.network = nn.Linear(2, 2)
        self.batch_size = 4
        self.together = 1
        self.unrepeatable: set[str] = set()

    def run(self) -> None: ...

    def history(self) -> list[float]:
        return self.losses


def judged(cell: Cell, losses: list[float], steps: int | None = None) -> list[Measurement]:
    """The measurements of these losses, where a constant predictor's loss is 1."""
    split = Split(torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64))
    work = TrainingWork(
        ToldLosses(losses, steps),
        SimpleNamespace(train=split, test=split),  # type: ignore[arg-type]
        SimpleNamespace(chance_loss=1.0, reference_loss=None, target_kind="class", byte_targets=False),
        params=6,
    )  # type: ignore[arg-type]
    return list(TASK.measurements(work, cell))


def test_success_is_a_tenth_of_chance_over_the_last_twentieth(digits: MakeCell) -> None:
    passing = judged(digits(), [1.0] * 95 + [0.1] * 5)
    failing = judged(digits(), [1.0] * 95 + [0.1] * 4 + [0.101])
    assert (scalars(passing)["success"], scalars(failing)["success"]) == (1.0, 0.0)
    assert scalars(passing)["final_loss"] == pytest.approx(0.1)
    assert scalars(failing)["final_loss"] == pytest.approx(0.1002)
    assert {m.status for m in passing if m.metric != "budget_mismatch"} == {Status.OK}
    assert {m.status for m in failing if m.metric != "budget_mismatch"} == {Status.STALLED}


def test_the_threshold_is_the_recipes(digits: MakeCell) -> None:
    assert scalars(judged(digits(threshold=0.5), [0.5] * 20))["success"] == 1.0
    assert scalars(judged(digits(threshold=0.5), [0.51] * 20))["success"] == 0.0


def test_steps_and_seconds_to_the_threshold(digits: MakeCell) -> None:
    result = scalars(judged(digits(), [1.0] * 40 + [0.05] * 60))  # the mean of five is 0.05 from step 45 on
    assert result["steps_to_threshold"] == 45
    assert result["seconds_to_threshold"] == 22.5
    assert result["step_seconds"] == 0.5
    never = scalars(judged(digits(), [1.0] * 100))
    assert (never["steps_to_threshold"], never["seconds_to_threshold"]) == (None, None)


def test_a_run_can_reach_the_threshold_and_lose_it(digits: MakeCell) -> None:
    result = scalars(judged(digits(), [0.01] * 50 + [1.0] * 50))
    assert (result["success"], result["steps_to_threshold"]) == (0.0, 5)


@pytest.mark.parametrize("end", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_divergence(digits: MakeCell, end: float) -> None:
    result = judged(digits(), [0.01, 0.02, end], steps=100)
    values = scalars(result)
    assert values["final_loss"] is None
    assert values["success"] == 0.0
    assert "test_loss" not in values
    final = [m for m in result if m.metric == "final_loss"]
    assert (final[0].status, final[0].message) == (Status.DIVERGED, "the loss was not finite at step 3")
    assert [(m.index, m.value) for m in result if m.metric == "loss"] == [(1, 0.01), (2, 0.02)]


def test_the_curve_is_means_of_equal_stretches() -> None:
    assert curve([1.0, 2.0, 3.0], points=50) == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert curve([1.0, 3.0, 5.0, 7.0, 9.0], points=3) == [(2, 2.0), (4, 6.0), (5, 9.0)]
    assert len(curve([1.0] * 501)) <= 50
    assert curve([1.0] * 500)[-1][0] == 500
    assert curve([1.0, math.nan]) == [(1, 1.0)]
    assert curve([math.inf]) == []
    assert curve([1.0, math.inf, 0.5]) == [(1, 1.0)]


def test_a_real_run_on_digits(digits: MakeCell) -> None:
    result = run(digits(width=32, steps=150))
    values = scalars(result)
    elsewhere = {"epoch_train_loss", "epoch_test_loss", "epoch_test_accuracy", "mistaken_for", "test_bits"}
    assert set(values) | {"loss"} | elsewhere == {metric.name for metric in TASK.metrics}
    assert values["success"] == 1.0
    assert float(values["final_loss"] or 9) < 0.23
    assert 0 < float(values["steps_to_threshold"] or 0) <= 150
    assert float(values["train_accuracy"] or 0) > 0.9
    assert float(values["test_accuracy"] or 0) > 0.85
    assert values["rate"] == 0.01
    losses = [m for m in result if m.metric == "loss"]
    assert (len(losses), losses[-1].index) == (50, 150)


def test_epochs_are_watched_and_mistakes_named(digits: MakeCell) -> None:
    cell = digits(width=32, steps=30)
    items = len(TASK.prepare(cell).data.train.inputs)
    steps = math.ceil(items / cell.batch_size)
    recipe = {**cell.recipe, "evaluate": "epoch", "last_batch": "keep", "mistakes": 7, "steps": 2 * steps + 1}
    result = run(cell.but(recipe=recipe))
    by_epoch = {
        name: [m.value for m in result if m.metric == name]
        for name in ("epoch_train_loss", "epoch_test_loss", "epoch_test_accuracy")
    }
    assert {name: len(values) for name, values in by_epoch.items()} == dict.fromkeys(by_epoch, 2)
    assert float(by_epoch["epoch_train_loss"][1] or 9) < float(by_epoch["epoch_train_loss"][0] or 0)
    wrong = [m for m in result if m.metric == "mistaken_for"]
    assert len(wrong) == 7
    test = TASK.prepare(cell).data.test
    assert all(int(test.targets[int(m.index)]) != m.value for m in wrong)


def test_a_kept_last_batch_counts_by_its_items(digits: MakeCell) -> None:
    cell = digits(width=8, steps=1)
    recipe = {**cell.recipe, "last_batch": "keep"}
    training = TASK.prepare(cell.but(recipe=recipe)).training
    items, size = len(training.train.inputs), training.batch_size
    assert items % size
    first = [next(training.batches) for _ in range(training.steps_per_epoch)]
    assert sorted(torch.cat(first).tolist()) == list(range(items))
    training.losses = [torch.tensor(0.0)] * (len(first) - 1) + [torch.tensor(1.0)]
    assert training.epoch_losses() == [pytest.approx(items % size / items)]


def test_a_rate_of_a_million_diverges(digits: MakeCell) -> None:
    result = run(digits("residual", depth=20, optimiser="sgd", rate=1e6))
    assert scalars(result)["final_loss"] is None
    assert {m.status for m in result if m.metric == "success"} == {Status.DIVERGED}


def test_one_seed_gives_one_run(digits: MakeCell) -> None:
    def losses(seed: int) -> list[float]:
        work = TASK.prepare(digits(seed=seed, steps=10))
        work.training.run()
        return work.training.history()

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


def test_the_order_of_batches_does_not_hang_on_the_block(digits: MakeCell) -> None:
    first, second = (TASK.prepare(digits(block)).training for block in ("plain", "highway"))
    for _ in range(3):
        assert torch.equal(next(first.batches), next(second.batches))


TUNED = {"optimiser": "sgd", "rate": "tuned", "rates": [0.3, 0.1, 0.03]}


def test_a_tuned_rate_needs_one_trial_a_rate(digits: MakeCell) -> None:
    one = digits(seed=4, **TUNED)
    trials = TASK.needs(one)
    assert [trial.recipe["rate"] for trial in trials] == [0.3, 0.1, 0.03]
    assert [trial.trial for trial in trials] == [0, 1, 2]
    assert {trial.seed for trial in trials} == {SEARCH_SEED}
    assert all("rates" not in trial.recipe for trial in trials)
    assert TASK.needs(digits(seed=0, **TUNED)) == trials  # the seeds share one search
    assert TASK.needs(digits()) == ()
    assert all(TASK.needs(trial) == () for trial in trials)


def test_every_block_gets_the_same_trials(digits: MakeCell) -> None:
    plain, highway = (TASK.needs(digits(block, **TUNED)) for block in ("plain", "highway"))
    assert [trial.but(block="highway") for trial in plain] == list(highway)


def test_the_best_finite_rate_wins(digits: MakeCell) -> None:
    one = digits(seed=4, **TUNED)
    trials = TASK.needs(one)

    def chosen(*losses: float | None) -> Any:
        result = {trial: {"final_loss": loss, "success": 0.0} for trial, loss in zip(trials, losses, strict=True)}
        return TASK.resolve(one, result)

    assert chosen(None, 0.2, 0.5).recipe["rate"] == 0.1
    assert chosen(0.1, 0.2, 0.5).recipe["rate"] == 0.3
    assert chosen(0.2, 0.2, 0.2).recipe["rate"] == 0.03
    assert chosen(None, None, None).recipe["rate"] == 0.03
    winner = chosen(None, 0.2, 0.5)
    assert (winner.seed, winner.trial) == (4, None)
    assert TASK.resolve(digits(), {}) == digits()


@pytest.mark.parametrize("ended", [{}, {"final_loss": None, "success": None}])
def test_no_block_is_tuned_on_fewer_rates(digits: MakeCell, ended: dict[str, float | None]) -> None:
    """A trial that ran out of time, or of memory, left no verdict: it has not diverged."""
    one = digits(seed=4, **TUNED)
    result = {trial: {"final_loss": 0.2, "success": 1.0} for trial in TASK.needs(one)}
    with pytest.raises(BadInput, match=r"rate 0\.1"):
        TASK.resolve(one, {**result, TASK.needs(one)[1]: ended})


SMALL = {"size": 40, "test_size": 20, "length": 6}


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize(
    ("family", "dataset", "options"),
    [("dense", "digits", {}), ("conv", "digits", {}), ("bilstm", "adding", SMALL), ("transformer", "copy", SMALL)],
)
def test_data_are_cast_to_the_networks_dtype(
    digits: MakeCell, dtype: str, family: str, dataset: str, options: dict[str, int]
) -> None:
    small = {"width": 8, "steps": 2, "batch_size": 4, "recipe": {"dataset": options}}
    result = scalars(run(digits(family=family, dataset=dataset, dtype=dtype, **small)))
    assert result["final_loss"] is not None
    assert result["test_loss"] is not None


def test_the_mismatch_of_flops_is_at_the_steps_of_the_data(digits: MakeCell) -> None:
    one = digits(family="attention", width=48, nominal_width=64, match="flops", batch_size=4, steps=1)
    expected = mismatch(blocks.get("highway"), make_family("attention"), 48, 64, "flops", positions=8)
    assert scalars(run(one))["budget_mismatch"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": None}, "data set"),
        ({"rate": "tuned", "rates": [0.1]}, "tuned"),
        ({"batch_size": 5_000}, "5000"),
        ({"dtype": "int8"}, "int8"),
    ],
)
def test_bad_input(digits: MakeCell, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run(digits(**changes))


def test_a_search_needs_rates(digits: MakeCell) -> None:
    with pytest.raises(BadInput, match="rates"):
        TASK.needs(digits(rate="tuned"))


def test_a_pair_that_makes_no_sense_is_skipped(cell: MakeCell) -> None:
    with pytest.raises(Skip, match="dense"):
        TASK.prepare(cell("trainability", dataset="adding", seq_len=12, **ADAM))

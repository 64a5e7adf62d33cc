"""Trainability: what a run that succeeds, stalls or diverges stores, also of a text, and which cells are skipped."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.data import Split, make_dataset
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.matching import mismatch
from highway_bench.results.schema import Status
from highway_bench.tasks import Skip, tasks
from highway_bench.tasks.trainability import TrainingWork, curve
from tests.cells import cell, on_digits, run, scalars

TASK = tasks.get("trainability")
ADAM = {"optimiser": "adam", "rate": 0.01, "decay": 1.0}


def trained(block="highway", **changes):
    return on_digits(block, **{"width": 16, **ADAM, **changes})


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
        self.unrepeatable = set()

    def run(self) -> None: ...

    def history(self) -> list[float]:
        return self.losses


def judged(cell, losses, steps=None):
    """The measurements of these losses, where a constant predictor's loss is 1."""
    split = Split(torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64))
    work = TrainingWork(
        ToldLosses(losses, steps),
        SimpleNamespace(train=split, test=split),
        SimpleNamespace(chance_loss=1.0, reference_loss=None, target_kind="class", byte_targets=False),
        params=6,
    )
    return list(TASK.measurements(work, cell))


@pytest.mark.parametrize(("threshold", "last", "success"), [(0.1, 0.1, 1.0), (0.1, 0.101, 0.0), (0.5, 0.501, 1.0)])
def test_a_run_succeeds_by_its_recipes_threshold(threshold, last, success):
    """Over the last twentieth of its steps."""
    result = judged(trained(threshold=threshold), [1.0] * 95 + [0.1] * 4 + [last])
    values = scalars(result)
    assert (values["success"], values["final_loss"]) == (success, pytest.approx((0.4 + last) / 5))
    statuses = {one.status for one in result if one.metric != "budget_mismatch"}
    assert statuses == {Status.OK if success else Status.STALLED}


@pytest.mark.parametrize(
    ("losses", "steps", "seconds"),
    [
        ([1.0] * 40 + [0.05] * 60, 45, 22.5),  # the mean of five is 0.05 from step 45 on
        ([1.0] * 100, None, None),
        ([0.01] * 50 + [1.0] * 50, 5, 2.5),  # and lost again
    ],
)
def test_steps_and_seconds_to_the_threshold(losses, steps, seconds):
    values = scalars(judged(trained(), losses))
    assert (values["steps_to_threshold"], values["seconds_to_threshold"]) == (steps, seconds)
    assert (values["step_seconds"], values["success"]) == (0.5, float(losses[-1] < 0.1))


@pytest.mark.parametrize("end", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_divergence(end):
    result = judged(trained(), [0.01, 0.02, end], steps=100)
    values = scalars(result)
    assert values["final_loss"] is None
    assert values["success"] == 0.0
    assert "test_loss" not in values
    final = [m for m in result if m.metric == "final_loss"]
    assert (final[0].status, final[0].message) == (Status.DIVERGED, "the loss was not finite at step 3")
    assert [(m.index, m.value) for m in result if m.metric == "loss"] == [(1, 0.01), (2, 0.02)]


def test_the_curve_is_means_of_equal_stretches():
    assert curve([1.0, 2.0, 3.0], points=50) == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert curve([1.0, 3.0, 5.0, 7.0, 9.0], points=3) == [(2, 2.0), (4, 6.0), (5, 9.0)]
    assert len(curve([1.0] * 501)) <= 50
    assert curve([1.0] * 500)[-1][0] == 500
    assert curve([1.0, math.nan]) == [(1, 1.0)]
    assert curve([math.inf]) == []
    assert curve([1.0, math.inf, 0.5]) == [(1, 1.0)]


def test_a_real_run_on_digits():
    result = run(trained(width=32, steps=150))
    values = scalars(result)
    elsewhere = {"epoch_train_loss", "epoch_test_loss", "epoch_test_accuracy", "mistaken_for", "test_bits"}
    assert set(values) | {"loss"} | elsewhere == {metric.name for metric in TASK.metrics}
    assert (values["success"], values["rate"]) == (1.0, 0.01)
    assert values["final_loss"] < 0.23
    assert 0 < values["steps_to_threshold"] <= 150
    assert values["train_accuracy"] > 0.9
    assert values["test_accuracy"] > 0.85
    losses = [one for one in result if one.metric == "loss"]
    assert (len(losses), losses[-1].index) == (50, 150)


def test_epochs_are_watched_and_mistakes_named():
    cell = trained(width=32, evaluate="epoch", last_batch="keep", mistakes=7)
    data = TASK.prepare(cell).data
    steps = 2 * math.ceil(len(data.train.inputs) / cell.batch_size) + 1
    result = run(cell.but(recipe={**cell.recipe, "steps": steps}))
    train, test, accuracy = (
        [one.value for one in result if one.metric == f"epoch_{name}"]
        for name in ("train_loss", "test_loss", "test_accuracy")
    )
    assert len(train) == len(test) == len(accuracy) == 2
    assert (train[1] or 9) < (train[0] or 0)
    wrong = [one for one in result if one.metric == "mistaken_for"]
    assert len(wrong) == 7
    assert all(int(data.test.targets[int(one.index)]) != one.value for one in wrong)


def test_a_kept_last_batch_counts_by_its_items():
    training = TASK.prepare(trained(width=8, steps=1, last_batch="keep")).training
    items, size = len(training.train.inputs), training.batch_size
    assert items % size
    first = [next(training.batches) for _ in range(training.steps_per_epoch)]
    assert sorted(torch.cat(first).tolist()) == list(range(items))
    training.losses = [torch.tensor(0.0)] * (len(first) - 1) + [torch.tensor(1.0)]
    assert training.epoch_losses() == [pytest.approx(items % size / items)]


def test_one_seed_gives_one_run():
    def losses(seed):
        work = TASK.prepare(trained(seed=seed, steps=10))
        work.training.run()
        return work.training.history()

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


SMALL = {"size": 40, "test_size": 20, "length": 6}


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize(
    ("family", "dataset", "options"),
    [("dense", "digits", {}), ("conv", "digits", {}), ("bilstm", "adding", SMALL), ("transformer", "copy", SMALL)],
)
def test_data_are_cast_to_the_networks_dtype(dtype, family, dataset, options):
    small = {"width": 8, "steps": 2, "batch_size": 4, "recipe": {"dataset": options}}
    result = scalars(run(trained(family=family, dataset=dataset, dtype=dtype, **small)))
    assert result["final_loss"] is not None
    assert result["test_loss"] is not None


def test_the_mismatch_of_flops_is_at_the_steps_of_the_data():
    one = trained(family="attention", width=48, nominal_width=64, match="flops", batch_size=4, steps=1)
    expected = mismatch(blocks.get("highway"), make_family("attention"), 48, 64, "flops", positions=8)
    assert scalars(run(one))["budget_mismatch"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset": None}, "data set"),
        ({"rate": "tuned", "rates": [0.1]}, "tuned"),
        ({"dtype": "int8"}, "int8"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(BadInput, match=message):
        run(trained(**changes))


# ---------------------------------------------------------------------------------------------------------------- text


@pytest.fixture
def text(tmp_path):
    """Makes a cell on a text of counted lines, in which a trigram predicts most bytes."""
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"{number % 7} sheep jump over {number % 5} fences\n" for number in range(300)))
    words = {"optimiser": "adamw", "rate": 0.01, "schedule": "cosine", "warm_up": 5, "steps": 20}
    recipe = {"dataset": {"path": str(file), "length": 16}}

    def make(family="transformer", **changes):
        fields = {"width": 16, "depth": 1, "batch_size": 8, "family_options": {"causal": True}, **changes}
        return cell("trainability", "pre-norm", family, dataset="language", recipe=recipe, **{**words, **fields})

    return make


def test_a_run_stores_bits_per_byte_and_its_target(text):
    one = text()
    values = scalars(run(one))
    assert values["success_loss"] == make_dataset("language", **one.recipe["dataset"]).reference_loss
    assert values["test_bits"] == pytest.approx(values["test_loss"] / math.log(2))
    assert 0 < values["test_bits"] < 8
    assert 0 < values["test_accuracy"] < 1
    assert values["success"] == 0.0


def test_a_run_succeeds_at_the_trigrams_loss(text):
    values = scalars(run(text(steps=200, depth=2, width=32)))
    assert values["final_loss"] <= values["success_loss"]
    assert values["success"] == 1.0


@pytest.mark.parametrize(("family", "reason"), [("transformer", "causal"), ("bilstm", "later"), ("dense", "tokens")])
def test_a_family_that_would_see_the_targets_is_skipped(text, family, reason):
    with pytest.raises(Skip, match=reason):
        TASK.prepare(text(family, family_options={}))
